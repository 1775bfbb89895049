// Command gateway is a simulated DingTalk for trying a bot without an account: each
// line that is typed is said to the bot in a group, and what it answers is printed.
// configs/simulated.yaml has the service connect to it. It shows how little that takes
// with dingtalktest; penstock simulate is the same with all that a developer needs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, "127.0.0.1:8971", os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// serve runs the gateway until ctx is done. It returns while a read from in may still
// be waiting for a line.
func serve(ctx context.Context, address string, in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	gateway, err := dingtalktest.New(dingtalktest.Config{
		Listener: listener,
		Down:     dingtalktest.DownHold, // a line may be typed before the bot is there
		OnSend:   func(s dingtalktest.Sent) { fmt.Fprintln(out, "bot:", s.Text) },
	})
	if err != nil {
		return err
	}
	app := gateway.App("")
	fmt.Fprintf(out, "gateway at %s for the client id %s\n", gateway.URL(), app.Credentials().ClientID)
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if _, err := app.Push(dingtalktest.Text("a-group", lines.Text())); err != nil {
				return // the gateway has stopped
			}
		}
	}()
	return gateway.Run(ctx)
}
