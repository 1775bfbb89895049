package store_test

import (
	"context"
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// ack acknowledges a message once it is safe, as a session would.
type ack struct{}

func (ack) Committed(op store.Op, err error) {
	if a, ok := op.(*store.Append); ok && err == nil {
		fmt.Println(a.Message.ID, "is", a.State, "as number", a.Seq)
	}
}

func Example() {
	s, err := memory.New(memory.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	w, err := store.NewWriter(s, store.WriterConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []message.ID{"m1", "m2", "m1"} {
		op := &store.Append{Message: &message.Inbound{ID: id, Installation: "bot"}}
		if err := w.Submit(op, ack{}); err != nil {
			fmt.Println(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // a writer that is stopping commits what waits
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// m1 is new as number 1
	// m2 is new as number 2
	// m1 is pending as number 1
}
