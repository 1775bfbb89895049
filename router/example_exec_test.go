//go:build unix

package router_test

import (
	"context"
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func ExampleNewExec() {
	h, err := router.NewExec(router.ExecConfig{
		Command: []string{"/bin/sh", "-c", `echo "got $PENSTOCK_ID"`},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := h.Handle(context.Background(), &message.Inbound{Installation: "bot", ID: "m1"})
	fmt.Println(res.Replies[0].Text, err)
	// Output: got bot:m1 <nil>
}
