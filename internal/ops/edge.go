package ops

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Errors of the verbs on the edge.
var (
	// ErrNoEdge means that no service runs whose edge could be asked.
	ErrNoEdge = errors.New("there is no edge without a running service")
	// ErrNoConsumer means that no consumer has the name that was asked for.
	ErrNoConsumer = errors.New("no such consumer")
	// ErrNoFrame means that a frame is not known: it never was, has been answered, or
	// its connection has ended.
	ErrNoFrame = errors.New("no such frame")
	// ErrAnswered means that a frame has been answered, though not well.
	ErrAnswered = errors.New("the frame has been answered")
	// ErrNotKept means that a frame may be answered and cannot be sent again.
	ErrNotKept = errors.New("the frame is not kept")
)

// States of a frame that tell why it cannot be sent again.
const (
	frameAcked   = "acked"
	frameEvicted = "evicted"
)

// Edge is the gateway for consumers, as an operator sees it. Its methods may be
// called from any number of goroutines.
type Edge interface {
	// Consumers lists those that may connect, with or without connections, and those
	// that no longer may and still have some.
	Consumers() []Consumer
	// Frames lists those that consumers may still answer.
	Frames() []Frame
	// Resend writes one of them once more; ErrNoFrame, and any other error if it
	// cannot.
	Resend(frame string) error
}

// Consumer is one bot with its connections. Fields are only added to it.
type Consumer struct {
	Name string `json:"name"`
	// MaxConnections is how many it may have.
	MaxConnections int `json:"max_connections"`
	// Removed tells that it may not connect any more.
	Removed bool `json:"removed,omitempty"`
	// Connections are those that are open, oldest first.
	Connections []Connection `json:"connections"`
}

// Connection is an open connection of a consumer. Fields are only added to it.
type Connection struct {
	ID string `json:"id"`
	// State is open, stalled or leaving.
	State string `json:"state"`
	// Agent is what the client calls itself, Remote the address it comes from.
	Agent  string    `json:"agent,omitempty"`
	Topics []string  `json:"topics"`
	Remote string    `json:"remote"`
	Since  time.Time `json:"since"`
	// SilentMS is for how many milliseconds nothing has come from it.
	SilentMS int64 `json:"silent_ms"`
	// Unanswered is how many messages wait for its answer.
	Unanswered int `json:"unanswered"`
	// Frames and Bytes are what is kept until it is answered.
	Frames int `json:"frames"`
	Bytes  int `json:"bytes"`
}

// Frame is a frame with a message that a consumer may still answer. Fields are only
// added to it.
type Frame struct {
	ID           string                 `json:"id"`
	Consumer     string                 `json:"consumer"`
	Connection   string                 `json:"connection"`
	Installation message.InstallationID `json:"installation"`
	Message      message.ID             `json:"message"`
	Sent         time.Time              `json:"sent"`
	// State is queued, written, acked, evicted or gone.
	State string `json:"state"`
	// Waiting tells that the message waits for an answer to this frame; else it has
	// gone out in another one, or waits for its next try.
	Waiting bool `json:"waiting"`
}

// Consumers implements API.
func (s *Service) Consumers(_ context.Context, name string) ([]Consumer, error) {
	if s.Edge == nil {
		return nil, ErrNoEdge
	}
	all := s.Edge.Consumers()
	if name == "" {
		return all, nil
	}
	for _, c := range all {
		if c.Name == name {
			return []Consumer{c}, nil
		}
	}
	return nil, noConsumer(name, all)
}

// Frames implements API.
func (s *Service) Frames(ctx context.Context, consumer string) ([]Frame, error) {
	if s.Edge == nil {
		return nil, ErrNoEdge
	}
	all := s.Edge.Frames()
	if consumer == "" {
		return all, nil
	}
	all = slices.DeleteFunc(all, func(f Frame) bool { return f.Consumer != consumer })
	if len(all) > 0 {
		return all, nil
	}
	_, err := s.Consumers(ctx, consumer) // one that is gone may have frames
	return nil, err
}

// Resend implements API.
func (s *Service) Resend(ctx context.Context, id string) (Frame, error) {
	if s.Edge == nil {
		return Frame{}, ErrNoEdge
	}
	f, ok := s.frame(id)
	if !ok {
		return Frame{}, noFrame(id)
	}
	if err := s.Edge.Resend(id); err != nil {
		return Frame{}, s.whyNot(id, err)
	}
	s.logResent(ctx, &f)
	return f, nil
}

func (s *Service) frame(id string) (Frame, bool) {
	for _, f := range s.Edge.Frames() {
		if f.ID == id {
			return f, true
		}
	}
	return Frame{}, false
}

// whyNot tells why a frame was not sent again, by its state now: it may have been
// answered since it was named.
func (s *Service) whyNot(id string, err error) error {
	f, ok := s.frame(id)
	switch {
	case !ok || errors.Is(err, ErrNoFrame):
		return noFrame(id)
	case f.State == frameAcked:
		return saying(ErrAnswered, "frame %s has been answered, though not well; "+
			"its message comes again in another frame, or is a dead letter", id)
	case f.State == frameEvicted:
		return saying(ErrNotKept, "frame %s is not kept any more, "+
			"since its connection has left too much unanswered; an answer to it still counts", id)
	}
	return saying(err, "frame %s was not written: %v", id, err)
}

func noFrame(id string) error {
	return saying(ErrNoFrame, "frame %s is not known: it never was, has been answered, "+
		"or its connection has ended", id)
}

func noConsumer(name string, all []Consumer) error {
	if len(all) == 0 {
		return saying(ErrNoConsumer, "there is no consumer %q: the service has none", name)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return saying(ErrNoConsumer, "there is no consumer %q; there are: %s", name,
		strings.Join(names, ", "))
}
