package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// clock is a clock that tests set.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.at.Store(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

// timed is a store with a clock and short terms.
func timed(t *testing.T, c *clock, path string) *sqlite.Store {
	t.Helper()
	return open(t, sqlite.WithClock(sqlite.Config{
		Path: path, Window: time.Hour, HistoryFor: 2 * time.Hour, DeadFor: 3 * time.Hour,
	}, c.now))
}

func again(t *testing.T, s *sqlite.Store, id string) (store.Seq, store.State) {
	t.Helper()
	op := &store.Append{Message: inbound(id)}
	commit(t, s, op)
	return op.Seq, op.State
}

// TestWindow looks at an id at the ends of its window, before and after retention
// has been there.
func TestWindow(t *testing.T) {
	c := newClock()
	s := timed(t, c, "")
	defer s.Close()
	commit(t, s, appends("done", "pending")...)
	commit(t, s, &store.Finish{Seq: 1}, &store.Add{Replies: []message.Outbound{
		{ID: "sent", Installation: "bot"}, {ID: "unsent", Installation: "bot"},
	}})
	commit(t, s, &store.Sent{Seq: 1})
	c.pass(time.Hour - time.Millisecond)
	seq, state := again(t, s, "done")
	require.Equal(t, store.StateDone, state)
	require.Equal(t, store.Seq(1), seq)
	c.pass(time.Millisecond)
	require.NoError(t, s.Round(t.Context()))
	seq, state = again(t, s, "done")
	require.Equal(t, store.StateNew, state, "the window is over")
	require.Equal(t, store.Seq(3), seq)
	seq, state = again(t, s, "pending")
	require.Equal(t, store.StatePending, state, "an item that is there is always known")
	require.Equal(t, store.Seq(2), seq)
	add := &store.Add{Replies: []message.Outbound{
		{ID: "sent", Installation: "bot"}, {ID: "unsent", Installation: "bot"},
	}}
	commit(t, s, add)
	require.Equal(t, []store.Seq{3, 2}, add.Seqs)
}

// TestRetention lets everything grow old: what is pending stays, with its id, and
// numbers go on where they were.
func TestRetention(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := timed(t, c, path)
	for i := range 300 {
		commit(t, s, appends("m"+strconv.Itoa(i))...)
	}
	for i := range 300 {
		if i != 7 {
			commit(t, s, &store.Finish{Seq: store.Seq(i + 1)})
		}
	}
	commit(t, s, &store.Append{Message: inbound("dead"), Bury: "bad"})
	require.Equal(t, 301, s.Stats().IDs)
	c.pass(2*time.Hour + time.Minute)
	require.NoError(t, s.Round(t.Context()))
	require.Equal(t, 2, s.Stats().IDs, "one is pending and one in the last commit")
	require.Equal(t, int64(1), counts(t, s).DeadInbox)
	_, err := s.Trace(t.Context(), "bot", "m3")
	require.ErrorIs(t, err, store.ErrNotFound)
	h, err := s.Trace(t.Context(), "bot", "m7")
	require.NoError(t, err)
	require.Equal(t, store.StatePending, h.State)

	c.pass(time.Hour)
	require.NoError(t, s.Round(t.Context()))
	require.NoError(t, s.Round(t.Context()), "there is nothing left to do")
	require.Zero(t, counts(t, s).DeadInbox)
	require.Equal(t, store.Seq(301), counts(t, s).LastInbox)
	require.NoError(t, s.Close())

	s = timed(t, c, path)
	defer s.Close()
	require.Equal(t, store.Counts{Inbox: 1, LastInbox: 301}, counts(t, s))
	seq, state := again(t, s, "m7")
	require.Equal(t, store.Seq(8), seq)
	require.Equal(t, store.StatePending, state)
	seq, state = again(t, s, "m8")
	require.Equal(t, store.Seq(302), seq, "numbers are never used again")
	require.Equal(t, store.StateNew, state)
	commit(t, s, &store.Finish{Seq: 8})
	seq, _ = again(t, s, "m7")
	require.Equal(t, store.Seq(303), seq, "its window was over long ago")
}

// TestHistoryOutlivesWindow traces what is a duplicate no more.
func TestHistoryOutlivesWindow(t *testing.T) {
	c := newClock()
	s := timed(t, c, "")
	defer s.Close()
	commit(t, s, appends("a")...)
	ended := c.now()
	commit(t, s, &store.Finish{Seq: 1})
	c.pass(90 * time.Minute)
	require.NoError(t, s.Round(t.Context()))
	h, err := s.Trace(t.Context(), "bot", "a")
	require.NoError(t, err)
	require.Equal(t, ended.UTC(), h.Ended)
	_, state := again(t, s, "a")
	require.Equal(t, store.StateNew, state)
}

// TestClockSetBack must neither lose an id nor bring anything back.
func TestClockSetBack(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := timed(t, c, path)
	commit(t, s, appends("old")...)
	commit(t, s, &store.Finish{Seq: 1})
	c.pass(50 * time.Minute)
	commit(t, s, appends("young")...)
	commit(t, s, &store.Finish{Seq: 2})
	c.pass(-time.Hour)
	for range 2 {
		require.NoError(t, s.Round(t.Context()))
		for i, id := range []string{"old", "young"} {
			seq, state := again(t, s, id)
			require.Equal(t, store.StateDone, state, "%s was forgotten", id)
			require.Equal(t, store.Seq(i+1), seq)
		}
		require.NoError(t, s.Close())
		s = timed(t, c, path)
	}
	defer func() { require.NoError(t, s.Close()) }()
	c.pass(2*time.Hour + time.Minute)
	_, state := again(t, s, "young")
	require.Equal(t, store.StateNew, state, "it goes on when the clock has caught up")
}

// TestClockWasWrong sets back a clock that was a year ahead.
func TestClockWasWrong(t *testing.T) {
	c := newClock()
	s := timed(t, c, "")
	defer s.Close()
	const year = 365 * 24 * time.Hour
	c.pass(year)
	commit(t, s, appends("ahead")...)
	commit(t, s, &store.Finish{Seq: 1})
	c.pass(-year)
	commit(t, s, appends("a")...)
	commit(t, s, &store.Finish{Seq: 2})
	_, state := again(t, s, "a")
	require.Equal(t, store.StateDone, state)
	c.pass(time.Hour)
	_, state = again(t, s, "a")
	require.Equal(t, store.StateNew, state, "windows are not a year long from now on")
}

func TestMaxIDs(t *testing.T) {
	s := open(t, sqlite.Config{MaxIDs: 50})
	defer s.Close()
	for i := range 100 {
		commit(t, s, appends(strconv.Itoa(i))...)
		commit(t, s, &store.Finish{Seq: store.Seq(i + 1)})
	}
	require.NoError(t, s.Round(t.Context()))
	st := s.Stats()
	require.Equal(t, 50, st.IDs)
	require.Equal(t, uint64(50), st.ForgottenIDs)
	_, state := again(t, s, "49")
	require.Equal(t, store.StateNew, state, "the oldest made room")
	_, state = again(t, s, "50")
	require.Equal(t, store.StateDone, state)
}

// TestLogIsBounded writes much more than the log may hold.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	defer s.Close()
	raw := message.Raw(strings.Repeat("x", 1<<20))
	longest := int64(0)
	for i := range 200 {
		m := inbound(strconv.Itoa(i))
		m.Raw = raw
		commit(t, s, &store.Append{Message: m})
		commit(t, s, &store.Finish{Seq: store.Seq(i + 1)})
		info, err := os.Stat(path + "-wal")
		require.NoError(t, err)
		longest = max(longest, info.Size())
	}
	require.Less(t, longest, int64(128<<20), "200 MiB went through it")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(64<<20), "room is used again")
}

// TestSettings asks the file what it was told.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	defer s.Close()
	c := stranger(t, path)
	for pragma, want := range map[string]string{
		"page_size": "4096", "journal_mode": "wal", "application_id": fmt.Sprint(0x506e5374),
		"auto_vacuum": "0",
	} {
		var got string
		require.NoError(t, c.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}

func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	for field, cfg := range map[string]sqlite.Config{
		"Path":       {},
		"Window":     {Path: path, Window: -1},
		"DeadFor":    {Path: path, DeadFor: -1},
		"HistoryFor": {Path: path, HistoryFor: -1},
		"MaxIDs":     {Path: path, MaxIDs: -1},
		"MaxBytes":   {Path: path, MaxBytes: -1},
		"CacheBytes": {Path: path, CacheBytes: -1},
		"BusyWait":   {Path: path, BusyWait: -1},
	} {
		_, err := sqlite.Open(t.Context(), cfg)
		require.ErrorContains(t, err, field)
	}
	require.NoFileExists(t, path)
}

// TestOddPath opens a store whose name means something in a URL.
func TestOddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory#%41&.db")
	s := open(t, sqlite.Config{Path: path})
	commit(t, s, appends("a")...)
	require.NoError(t, s.Close())
	require.FileExists(t, path)
	s = open(t, sqlite.Config{Path: path})
	require.Len(t, inbox(t, s), 1)
	require.NoError(t, s.Close())
}
