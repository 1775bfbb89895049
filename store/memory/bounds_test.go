package memory_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

func inbound(id string) *message.Inbound {
	return &message.Inbound{ID: message.ID(id), Installation: "bot-1"}
}

// add appends a message and gives its number and where the store says it stands.
func add(t testing.TB, s *memory.Store, id string) (store.Seq, store.State) {
	t.Helper()
	op := &store.Append{Message: inbound(id)}
	commit(t, s, op)
	return op.Seq, op.State
}

func commit(t testing.TB, s *memory.Store, ops ...store.Op) {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), ops))
	for _, op := range ops {
		require.NoError(t, op.Result())
	}
}

func counts(t testing.TB, s *memory.Store) store.Counts {
	t.Helper()
	c, err := s.Counts(t.Context())
	require.NoError(t, err)
	return c
}

func TestConfig(t *testing.T) {
	for field, cfg := range map[string]memory.Config{
		"MaxItems":     {MaxItems: -1},
		"MaxBytes":     {MaxBytes: -1},
		"MaxDead":      {MaxDead: -1},
		"MaxDeadBytes": {MaxDeadBytes: -1},
		"MaxIDs":       {MaxIDs: -1},
		"Window":       {Window: -1},
	} {
		_, err := memory.New(cfg)
		require.ErrorContains(t, err, field)
	}
}

func TestMaxBytes(t *testing.T) {
	s := open(t, memory.Config{MaxBytes: 4_000})
	big := &store.Append{Message: inbound("a")}
	big.Message.Raw = message.Raw(strings.Repeat("x", 3_000))
	second := &store.Append{Message: inbound("b")}
	commit(t, s, big)
	require.NoError(t, s.Commit(t.Context(), []store.Op{second}))
	require.ErrorIs(t, second.Result(), store.ErrFull)
	commit(t, s, &store.Finish{Seq: big.Seq}, second)
	commit(t, s, &store.Finish{Seq: second.Seq})
	require.Zero(t, s.Stats().Bytes)
}

func TestDeadLettersAreBoundedByNumber(t *testing.T) {
	s := open(t, memory.Config{MaxDead: 3})
	for i := range 5 {
		commit(t, s, &store.Append{Message: inbound(strconv.Itoa(i)), Bury: strconv.Itoa(i)})
	}
	dead, err := s.DeadLetters(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, dead, 3)
	require.Equal(t, "4", dead[0].Reason)
	require.Equal(t, "2", dead[2].Reason)
	require.Equal(t, int64(3), counts(t, s).DeadInbox)
	require.Equal(t, uint64(2), s.Stats().DroppedDead)
	_, state := add(t, s, "0")
	require.Equal(t, store.StateDead, state, "its id is still known")
}

func TestDeadLettersAreBoundedByBytes(t *testing.T) {
	s := open(t, memory.Config{MaxDeadBytes: 2_000})
	for i := range 3 {
		m := inbound(strconv.Itoa(i))
		m.Raw = message.Raw(strings.Repeat("x", 5_000))
		commit(t, s, &store.Append{Message: m, Bury: "big"})
		require.Equal(t, int64(1), counts(t, s).DeadInbox, "one is kept whatever its size")
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		commit(t, s, &store.Append{Message: inbound(id), Bury: "small"})
	}
	require.Equal(t, int64(3), counts(t, s).DeadInbox)
	require.LessOrEqual(t, s.Stats().DeadBytes, int64(2_000))
	require.Equal(t, uint64(4), s.Stats().DroppedDead)
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Config{Window: time.Hour})
		done, _ := add(t, s, "done")
		parked, _ := add(t, s, "parked")
		commit(t, s, &store.Finish{Seq: done, Replies: []message.Outbound{{ID: "r"}}})
		<-time.After(time.Hour - 1)
		_, state := add(t, s, "done")
		require.Equal(t, store.StateDone, state)
		<-time.After(1)
		again, state := add(t, s, "done")
		require.Equal(t, store.StateNew, state, "the window is over")
		require.Greater(t, again, parked)

		_, state = add(t, s, "parked")
		require.Equal(t, store.StatePending, state, "what is in the store is known")
		commit(t, s, &store.Finish{Seq: parked})
		_, state = add(t, s, "parked")
		require.Equal(t, store.StateNew, state, "its window was over long before")

		op := &store.Add{Replies: []message.Outbound{{ID: "r"}}}
		commit(t, s, op)
		require.Equal(t, []store.Seq{1}, op.Seqs, "a reply that waits is known")
		commit(t, s, &store.Sent{Seq: 1}, op)
		require.Equal(t, []store.Seq{2}, op.Seqs)
		require.Zero(t, s.Stats().ForgottenIDs)
	})
}

func TestParkedItemOutlivesTheWindowOfItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.Config{Window: time.Hour})
		finished, _ := add(t, s, "finished")
		buried, _ := add(t, s, "buried")
		<-time.After(2 * time.Hour)
		for i := range 10 { // pushes both out of the order of ids
			add(t, s, strconv.Itoa(i))
		}
		_, state := add(t, s, "finished")
		require.Equal(t, store.StatePending, state)
		commit(t, s, &store.Finish{Seq: finished}, &store.Bury{Seq: buried})
		require.Equal(t, 10, s.Stats().IDs, "then their ids go with them")
		for _, id := range []string{"finished", "buried"} {
			_, state = add(t, s, id)
			require.Equal(t, store.StateNew, state)
		}
	})
}

func TestMaxIDs(t *testing.T) {
	s := open(t, memory.Config{MaxIDs: 3})
	held, _ := add(t, s, "held")
	for i := range 5 {
		n, _ := add(t, s, strconv.Itoa(i))
		commit(t, s, &store.Finish{Seq: n})
	}
	require.Equal(t, 4, s.Stats().IDs)
	require.Equal(t, uint64(2), s.Stats().ForgottenIDs)
	for _, c := range []struct {
		id    string
		state store.State
	}{
		{"held", store.StatePending},
		{"4", store.StateDone},
		{"2", store.StateDone},
		{"0", store.StateNew},
	} {
		_, state := add(t, s, c.id)
		require.Equal(t, c.state, state, "id %q", c.id)
	}
	commit(t, s, &store.Finish{Seq: held})
	_, state := add(t, s, "held")
	require.Equal(t, store.StateNew, state, "it was held beside the three")
}

// TestDoneItemsLeaveNothing puts 64 MiB through a store and looks at what is left.
func TestDoneItemsLeaveNothing(t *testing.T) {
	s := open(t, memory.Config{MaxIDs: 1_000})
	const many, size = 1_000, 64 << 10
	for round := range 2 {
		for i := range many {
			payload := strings.Repeat("x", size) + strconv.Itoa(round*many+i)
			m := inbound(payload[size:]) // an id that is cut from the payload
			m.Raw = message.Raw(payload)
			commit(t, s, &store.Append{Message: m})
		}
		for i := range many {
			commit(t, s, &store.Finish{Seq: store.Seq(round*many + i + 1)})
		}
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapAlloc, uint64(16<<20))
	runtime.KeepAlive(s)
}
