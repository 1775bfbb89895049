package edge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
)

// ErrNoFrame means that a frame is not known: it never was, has been answered, or
// its connection has ended.
var ErrNoFrame = errors.New("edge: no such frame")

// States of a [Connection].
const (
	StateOpen    = "open"
	StateStalled = "stalled" // it does not read, and gets nothing new
	StateLeaving = "leaving" // it gets nothing new, or was asked to leave
)

// Connection is an open connection of a consumer.
type Connection struct {
	ID, Consumer string
	// Agent is what the client calls itself, Remote the address it comes from.
	Agent, Remote string
	State         string
	Since         time.Time
	// Silent is how long it has said nothing.
	Silent time.Duration
	// Topics are the callback topics that it has subscribed to, and "*" for events.
	Topics []string
	// Owed is how many messages wait for its answer. Kept and Bytes are frames that
	// it has not answered, also those whose message has gone elsewhere since.
	Owed, Kept, Bytes int
}

// Connections gives the open connections, by consumer and age.
func (s *Server) Connections() []Connection {
	var all []Connection
	now := time.Now()
	for _, c := range s.all() {
		all = c.appendConnections(all, now)
	}
	slices.SortStableFunc(all, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), a.Since.Compare(b.Since))
	})
	return all
}

func (c *consumer) appendConnections(all []Connection, now time.Time) []Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		kept := p.sock.Tracker().Stats()
		all = append(all, Connection{
			ID: p.id, Consumer: c.name, Agent: p.agent, Remote: p.remote,
			State: p.stateLocked(now), Since: p.opened, Silent: p.silence(now),
			Topics: p.topics(), Owed: p.owed, Kept: kept.Frames, Bytes: kept.Bytes,
		})
	}
	return all
}

func (p *peer) topics() []string {
	var all []string
	for sub := range p.subs {
		if sub.Type != typeSystem {
			all = append(all, sub.Topic)
		}
	}
	slices.Sort(all)
	return all
}

func (p *peer) stateLocked(now time.Time) string {
	switch {
	case p.retiring:
		return StateLeaving
	case p.stalledLocked(now):
		return StateStalled
	default:
		return StateOpen
	}
}

// Frame is a frame with a message whose answer still counts.
type Frame struct {
	ID, Consumer, Connection string
	Installation             message.InstallationID
	Message                  message.ID
	Sent                     time.Time
	// State is queued, written, acked if the answer was a bad one, evicted if it is
	// not kept for being sent again, or gone if its connection has ended.
	State string
	// Waiting is set on the last frame of a message that waits for an answer. Without
	// it, the message has gone out in another frame since, or waits for its next try.
	Waiting bool
}

// Frames gives the frames that the consumers may still answer, the oldest first.
func (s *Server) Frames() []Frame {
	var all []Frame
	for _, c := range s.all() {
		all = c.appendFrames(all)
	}
	slices.SortFunc(all, func(a, b Frame) int {
		return cmp.Or(a.Sent.Compare(b.Sent), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (c *consumer) appendFrames(all []Frame) []Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.open {
		for _, f := range d.frames {
			all = append(all, Frame{
				ID: f.frame, Consumer: c.name, Connection: f.peer.id,
				Installation: d.key.installation, Message: d.key.id,
				Sent: f.at, State: f.stateText(), Waiting: d.waiting && f == d.latestLocked(),
			})
		}
	}
	return all
}

func (f carrier) stateText() string {
	select {
	case <-f.peer.gone:
		return FrameGone
	default:
		return f.state().String()
	}
}

// FrameGone is the state of a [Frame] whose connection has ended.
const FrameGone = "gone"

// Resend writes a frame once more, byte for byte, to the connection that has it, if
// it does not wait to be written anyway. An answer to either copy counts. It fails
// with ErrNoFrame, or if the frame has been answered badly or is not kept.
func (s *Server) Resend(frame string) error {
	for _, c := range s.all() {
		f, ok := c.carrier(frame)
		if !ok {
			continue
		}
		state, err := f.peer.sock.Resend(frame)
		switch {
		case errors.Is(err, wire.ErrClosed):
			return fmt.Errorf("resend %s: %w", frame, ErrNoFrame)
		case err != nil:
			return fmt.Errorf("edge: resend %s: %w", frame, err)
		case state != wire.Queued:
			return fmt.Errorf("edge: resend %s: it is %s", frame, state)
		}
		return nil
	}
	return fmt.Errorf("resend %s: %w", frame, ErrNoFrame)
}

// carrier finds a frame that may still be answered.
func (c *consumer) carrier(frame string) (carrier, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.frames[frame]; d != nil {
		for _, f := range d.frames {
			if f.frame == frame {
				return f, true
			}
		}
	}
	return carrier{}, false
}
