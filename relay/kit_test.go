package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// kit is a relay with one installation, a scripted sender and a recording store,
// inside a synctest bubble.
type kit struct {
	t      *testing.T
	relay  *relay.Relay
	lane   *relay.Lane
	store  *faultyStore
	sender *sender
	done   chan error
}

const installation = message.InstallationID("bot")

func newKit(t *testing.T, cfg relay.Config) *kit {
	t.Helper()
	return newKitOn(t, cfg, openMemory(t))
}

func newKitOn(t *testing.T, cfg relay.Config, s store.Store) *kit {
	t.Helper()
	k := &kit{
		t: t, store: &faultyStore{Store: s}, sender: &sender{}, done: make(chan error, 1),
	}
	cfg.Store = k.store
	var err error
	k.relay, err = relay.New(cfg)
	require.NoError(t, err)
	k.lane, err = k.relay.Attach(installation, k.sender)
	require.NoError(t, err)
	go func() { k.done <- k.relay.Run(context.Background()) }()
	synctest.Wait()
	return k
}

// stop ends the relay within d.
func (k *kit) stop(d time.Duration) relay.Report {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	rep := k.relay.Shutdown(ctx)
	require.NoError(k.t, <-k.done)
	return rep
}

// offer gives the lane a text message and returns its acknowledgement.
func (k *kit) offer(id, conversation string) *ack {
	k.t.Helper()
	return k.offerMessage(text(id, conversation))
}

func (k *kit) offerMessage(m *message.Inbound) *ack {
	k.t.Helper()
	a := &ack{}
	require.NoError(k.t, k.lane.Accept(context.Background(), message.Delivery{Message: m, Ack: a}))
	return a
}

func text(id, conversation string) *message.Inbound {
	return &message.Inbound{
		ID: message.ID(id), Kind: message.KindMessage, Type: message.TypeText, Text: id,
		Conversation: message.Conversation{ID: message.ConversationID(conversation)},
	}
}

// pass lets d go by and everything that becomes due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// ack records how a delivery was settled.
type ack struct {
	mu       sync.Mutex
	verdicts []message.Verdict
	body     string
}

func (a *ack) Settle(v message.Verdict, body []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verdicts = append(a.verdicts, v)
	a.body = string(body)
	return nil
}

func (a *ack) got() []message.Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.verdicts
}

// faultyStore fails or stalls commits on demand.
type faultyStore struct {
	store.Store
	mu   sync.Mutex
	fail func(ops []store.Op) error
	hold chan struct{}
}

var errDisk = errors.New("disk is full")

func (s *faultyStore) Commit(ctx context.Context, ops []store.Op) error {
	s.mu.Lock()
	fail, hold := s.fail, s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if fail != nil {
		if err := fail(ops); err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, ops)
}

func (s *faultyStore) failOn(match func(store.Op) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if match == nil {
		s.fail = nil
		return
	}
	s.fail = func(ops []store.Op) error {
		for _, op := range ops {
			if match(op) {
				return errDisk
			}
		}
		return nil
	}
}

func (s *faultyStore) stall() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold = hold
	return func() {
		s.mu.Lock()
		s.hold = nil
		s.mu.Unlock()
		close(hold)
	}
}

// sender records what is sent and fails as it is told.
type sender struct {
	mu    sync.Mutex
	sent  []message.Outbound
	fails []error // of the next attempts
	parts int     // into how many parts a reply is cut
	tried int
	until func() // called in each attempt, outside the lock
}

func (s *sender) Address(m *message.Inbound) (message.Target, error) {
	return message.Target("to " + m.Conversation.ID), nil
}

func (s *sender) Split(o message.Outbound) []message.Outbound {
	out := make([]message.Outbound, max(1, s.parts))
	for i := range out {
		out[i] = o
		out[i].Part, out[i].Parts = i+1, len(out)
		out[i].ID = message.ID(fmt.Sprintf("%s#%d", o.ID, i+1))
		out[i].Text = fmt.Sprintf("%s#%d", o.Text, i+1)
	}
	return out
}

func (s *sender) Send(_ context.Context, o message.Outbound) (message.Receipt, error) {
	if s.until != nil {
		s.until()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if len(s.fails) > 0 {
		err := s.fails[0]
		s.fails = s.fails[1:]
		if err != nil {
			return message.Receipt{}, err
		}
	}
	s.sent = append(s.sent, o)
	return message.Receipt{ID: "r"}, nil
}

func (s *sender) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, o := range s.sent {
		list = append(list, o.Text)
	}
	return list
}

// recorder is a handler that notes the ids it is given, in order.
type recorder struct {
	mu       sync.Mutex
	ids      []string
	attempts []int
	handle   func(ctx context.Context, m *message.Inbound) (router.Result, error)
}

func (r *recorder) Handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	r.mu.Lock()
	r.ids = append(r.ids, string(m.ID))
	r.attempts = append(r.attempts, m.Attempt)
	r.mu.Unlock()
	if r.handle == nil {
		return router.Result{}, nil
	}
	return r.handle(ctx, m)
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

func (s *sender) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

func openMemory(t *testing.T) *memory.Store {
	t.Helper()
	s, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return s
}
