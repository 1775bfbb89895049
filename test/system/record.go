package system

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
)

// Run is one call of the handler.
type Run struct {
	Message message.Inbound
	At      time.Time
}

// Ended is a message that reached its end; Dead is empty, or the reason.
type Ended struct {
	Message message.Inbound
	Dead    string
}

// Try is one attempt to send.
type Try struct {
	Reply message.Outbound
	At    time.Time
	Err   error
}

// SendEnded is a reply that reached its end; Dead is empty, or the reason.
type SendEnded struct {
	Reply message.Outbound
	Dead  string
}

// Record is the handler of a service and keeps what it and the pipeline did.
type Record struct {
	mu sync.Mutex // guards the following fields
	// handle is what the handler does; nil means nothing.
	handle    router.HandlerFunc
	runs      []Run
	ended     []Ended
	tries     []Try
	sendEnded []SendEnded
	changed   chan struct{} // closed and replaced when something happened
}

// NewRecord makes an empty one. Services that follow one another may share it.
func NewRecord() *Record { return &Record{changed: make(chan struct{})} }

// Handle implements router.Handler.
func (r *Record) Handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	var handle router.HandlerFunc
	r.change(func() {
		r.runs = append(r.runs, Run{*m, time.Now()})
		handle = r.handle
	})
	if handle == nil {
		return router.Result{}, nil
	}
	return handle(ctx, m)
}

// Do sets what the handler does from now on.
func (r *Record) Do(handle router.HandlerFunc) {
	r.change(func() { r.handle = handle })
}

func (r *Record) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Record) hooks() relay.Hooks {
	return relay.Hooks{
		Ended: func(m *message.Inbound, dead string) {
			r.change(func() { r.ended = append(r.ended, Ended{*m, dead}) })
		},
		SendTried: func(o *message.Outbound, _ time.Duration, err error) {
			r.change(func() { r.tries = append(r.tries, Try{*o, time.Now(), err}) })
		},
		SendEnded: func(o *message.Outbound, dead string) {
			r.change(func() { r.sendEnded = append(r.sendEnded, SendEnded{*o, dead}) })
		},
	}
}

// Runs are the calls of the handler so far.
func (r *Record) Runs() []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

// Ended are the messages that have reached their end.
func (r *Record) Ended() []Ended {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}

// Tries are the attempts to send so far.
func (r *Record) Tries() []Try {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tries)
}

// SendsEnded are the replies that have reached their end.
func (r *Record) SendsEnded() []SendEnded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sendEnded)
}

// Await blocks until ok, which is called after each change and may use the other
// methods.
func (r *Record) Await(ctx context.Context, what string, ok func() bool) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w", what, ctx.Err())
		}
	}
}

// AwaitRun blocks until the handler has been called with a message of this text.
func (r *Record) AwaitRun(ctx context.Context, text string) error {
	return r.Await(ctx, "handler of "+text, func() bool {
		return slices.ContainsFunc(r.Runs(), func(x Run) bool { return x.Message.Text == text })
	})
}

// AwaitEnded blocks until a message of this text has reached its end.
func (r *Record) AwaitEnded(ctx context.Context, text string) error {
	return r.Await(ctx, "end of "+text, func() bool {
		return slices.ContainsFunc(r.Ended(), func(x Ended) bool { return x.Message.Text == text })
	})
}
