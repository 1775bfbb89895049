package dispatch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/dispatch"
)

func Example() {
	d, err := dispatch.New(dispatch.Config[string, string]{
		Workers: 4,
		Run: func(_ context.Context, t *dispatch.Task[string, string]) dispatch.Outcome {
			if t.Job == "flaky" && t.Runs == 1 {
				return dispatch.Hold(time.Millisecond) // again, and the key waits
			}
			fmt.Println(t.Key, t.Job, t.Runs)
			return dispatch.Done()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range []string{"first", "flaky", "last"} {
		if err := d.Enqueue("chat", job); err != nil {
			fmt.Println(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("drained:", d.DrainAndClose(ctx))
	// Output:
	// chat first 1
	// chat flaky 2
	// chat last 1
	// drained: true
}
