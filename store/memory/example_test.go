package memory_test

import (
	"context"
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

func Example() {
	ctx := context.Background()
	s, err := memory.New(memory.Config{MaxItems: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	first := &store.Append{Message: &message.Inbound{ID: "m1"}}
	second := &store.Append{Message: &message.Inbound{ID: "m2"}}
	if err := s.Commit(ctx, []store.Op{first, second}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Result(), "/", second.Result())
	// Output: <nil> / store: full
}
