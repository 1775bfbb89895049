package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// Example takes a message in, and finds it after a restart.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := sqlite.Config{Path: filepath.Join(dir, "penstock.db")}

	s, err := sqlite.Open(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	op := &store.Append{Message: &message.Inbound{ID: "m1", Installation: "bot", Text: "hello"}}
	fmt.Println("commit:", s.Commit(ctx, []store.Op{op})) // nil means that it is on the disk
	_, err = sqlite.Open(ctx, cfg)
	fmt.Println("in use:", err != nil)
	fmt.Println("close:", s.Close())

	s, err = sqlite.Open(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	p, err := s.LoadInbox(ctx, op.Seq)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pending:", p[0].Message.Text)
	// Output:
	// commit: <nil>
	// in use: true
	// close: <nil>
	// pending: hello
}
