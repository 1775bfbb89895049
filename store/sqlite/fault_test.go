package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

func inbound(id string) *message.Inbound {
	return &message.Inbound{
		ID: message.ID(id), Installation: "bot",
		Conversation: message.Conversation{ID: message.ConversationID("cid/" + id)},
		Raw:          message.Raw(`{"id":"` + id + `"}`),
	}
}

func appends(ids ...string) (ops []store.Op) {
	for _, id := range ids {
		ops = append(ops, &store.Append{Message: inbound(id)})
	}
	return ops
}

func commit(t testing.TB, s *sqlite.Store, ops ...store.Op) {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), ops))
	for _, op := range ops {
		require.NoError(t, op.Result())
	}
}

func inbox(t testing.TB, s *sqlite.Store) (seqs []store.Seq) {
	t.Helper()
	heads, err := s.InboxHeads(t.Context(), 0, 1<<20)
	require.NoError(t, err)
	for _, h := range heads {
		seqs = append(seqs, h.Seq)
	}
	return seqs
}

func counts(t testing.TB, s *sqlite.Store) store.Counts {
	t.Helper()
	c, err := s.Counts(t.Context())
	require.NoError(t, err)
	return c
}

// stranger opens the file as another program would.
func stranger(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		require.NoError(t, db.Close())
	})
	return c
}

func run(t *testing.T, c *sql.Conn, text string) {
	t.Helper()
	_, err := c.ExecContext(t.Context(), text)
	require.NoError(t, err)
}

func TestDiskFull(t *testing.T) {
	s := open(t, sqlite.Config{MaxBytes: 1 << 20})
	defer s.Close()
	raw := message.Raw(strings.Repeat("x", 100<<10))
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		m := inbound(strconv.Itoa(n))
		m.Raw = raw
		with := appends("with " + strconv.Itoa(n))
		err = s.Commit(t.Context(), append(with, &store.Append{Message: m}))
	}
	require.ErrorIs(t, err, sqlite.ErrDiskFull)
	require.ErrorIs(t, err, store.ErrFull)
	require.Len(t, inbox(t, s), 2*(n-1), "nothing of the group that failed holds")
	require.Equal(t, int64(2*(n-1)), counts(t, s).Inbox)

	commit(t, s, &store.Finish{Seq: 2}, &store.Finish{Seq: 4})
	op := &store.Append{Message: inbound(strconv.Itoa(n - 1))}
	op.Message.Raw = raw
	commit(t, s, op)
	require.Equal(t, store.StateNew, op.State, "it goes on by itself when there is room")
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path, BusyWait: 20 * time.Millisecond})
	defer s.Close()
	c := stranger(t, path)
	run(t, c, "BEGIN IMMEDIATE")
	require.ErrorIs(t, s.Commit(t.Context(), appends("a")), sqlite.ErrLocked)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Commit(ctx, appends("a")), context.DeadlineExceeded)
	require.Empty(t, inbox(t, s), "reading goes on")
	run(t, c, "ROLLBACK")
	commit(t, s, appends("a")...)
}

func TestLockedForAWhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path, BusyWait: time.Minute})
	defer s.Close()
	c := stranger(t, path)
	run(t, c, "BEGIN IMMEDIATE")
	done := make(chan error)
	go func() { done <- s.Commit(t.Context(), appends("a")) }()
	select {
	case err := <-done:
		t.Fatalf("committed beside a lock: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	run(t, c, "ROLLBACK")
	require.NoError(t, <-done)
	require.Len(t, inbox(t, s), 1)
}

func TestReadOnly(t *testing.T) {
	s := open(t, sqlite.Config{})
	defer s.Close()
	commit(t, s, appends("a")...)
	require.NoError(t, s.Script("PRAGMA query_only = ON"))
	require.ErrorIs(t, s.Commit(t.Context(), appends("b")), sqlite.ErrReadOnly)
	require.Len(t, inbox(t, s), 1)
	commit(t, s, appends("b")...) // on a new connection

	path := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.ErrorIs(t, err, sqlite.ErrReadOnly)
	require.ErrorContains(t, err, path)
}

func TestMoved(t *testing.T) {
	for _, suffix := range []string{"", "-wal"} {
		t.Run("file"+suffix, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "penstock.db")
			s := open(t, sqlite.Config{Path: path})
			defer s.Close()
			commit(t, s, appends("a")...)
			require.NoError(t, os.Rename(path+suffix, path+".away"))
			err := s.Commit(t.Context(), appends("b"))
			require.ErrorIs(t, err, sqlite.ErrMoved, "a commit to a file without a name is lost")
			require.NoError(t, os.WriteFile(path+suffix, nil, 0o600))
			require.ErrorIs(t, s.Commit(t.Context(), appends("b")), sqlite.ErrMoved)
			require.NoError(t, os.Rename(path+".away", path+suffix))
			commit(t, s, appends("b")...)
			require.Len(t, inbox(t, s), 2)
		})
	}
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	refused := func(why string) {
		t.Helper()
		_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		require.ErrorIs(t, err, sqlite.ErrDamaged, why)
		require.ErrorContains(t, err, path)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
	refused("it is no database")
	require.NoError(t, os.Remove(path))
	run(t, stranger(t, path), "CREATE TABLE theirs (x)")
	refused("it belongs to another program")
}

// TestDamagedInside breaks pages in the middle of a file that was not closed.
func TestDamagedInside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	for i := range 200 {
		commit(t, s, appends(strconv.Itoa(i), strconv.Itoa(-i-1))...)
	}
	require.NoError(t, s.Close())
	c := stranger(t, path)
	run(t, c, "UPDATE meta SET v = 1 WHERE k = 'running'")
	run(t, c, "PRAGMA wal_checkpoint(TRUNCATE)")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	noise := []byte(strings.Repeat("\xde\xad", 2048))
	for at := int64(4096 * 5); at < info.Size(); at += 8192 {
		_, err = f.WriteAt(noise, at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	_, err = sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.ErrorIs(t, err, sqlite.ErrDamaged)
}

func TestUncleanStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	defer s.Close()
	require.False(t, s.Stats().Unclean)
	commit(t, s, appends("a")...)
	copied := filepath.Join(t.TempDir(), "copy.db")
	copyFiles(t, path, copied)
	again := open(t, sqlite.Config{Path: copied})
	require.True(t, again.Stats().Unclean)
	require.Len(t, inbox(t, again), 1)
	require.NoError(t, again.Close())
	again = open(t, sqlite.Config{Path: copied})
	require.False(t, again.Stats().Unclean, "it was closed this time")
	require.NoError(t, again.Close())
}

func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "dir", "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	var in *sqlite.InUseError
	require.ErrorAs(t, err, &in)
	host, _ := os.Hostname()
	require.Equal(t, path, in.Path)
	require.Equal(t, os.Getpid(), in.PID)
	require.Equal(t, host, in.Host)
	require.WithinDuration(t, time.Now(), in.Since, time.Minute)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
	commit(t, s, appends("a")...)
	require.NoError(t, s.Close())

	require.NoError(t, os.WriteFile(path+".lock", []byte("{"), 0o600))
	s = open(t, sqlite.Config{Path: path})
	require.NoError(t, os.WriteFile(path+".lock", []byte("{"), 0o600))
	_, err = sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.ErrorAs(t, err, &in)
	require.Zero(t, in.PID, "an owner that cannot be read is not invented")
	require.NotEmpty(t, err.Error())
	require.NoError(t, s.Close())
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s := open(t, sqlite.Config{Path: filepath.Join(dir, "penstock.db")})
	defer s.Close()
	commit(t, s, appends("a")...)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
}

func TestChangedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	defer s.Close()
	commit(t, s, appends("a", "b", "c")...)
	c := stranger(t, path)
	run(t, c, "DELETE FROM inbox WHERE seq = 2")
	gone, there := &store.Finish{Seq: 2}, &store.Finish{Seq: 3}
	require.Error(t, s.Commit(t.Context(), []store.Op{gone, there}))
	require.Equal(t, []store.Seq{1, 3}, inbox(t, s))
	require.NoError(t, s.Commit(t.Context(), []store.Op{gone, there}))
	require.ErrorIs(t, gone.Result(), store.ErrNotFound)
	require.NoError(t, there.Result())
	require.Equal(t, int64(1), counts(t, s).Inbox)
}

// TestCommitThatHeld has a commit reach the file whose success nobody saw.
func TestCommitThatHeld(t *testing.T) {
	s := open(t, sqlite.Config{})
	defer s.Close()
	commit(t, s, appends("a")...)
	require.NoError(t, s.CommitUnseen(t.Context(), append(appends("b"), &store.Finish{Seq: 1})))
	again := append(appends("b"), &store.Finish{Seq: 1})
	require.NoError(t, s.Commit(t.Context(), again))
	b := again[0].(*store.Append)
	require.Equal(t, store.StatePending, b.State, "it is there already")
	require.Equal(t, store.Seq(2), b.Seq)
	require.ErrorIs(t, again[1].Result(), store.ErrNotFound)
	require.Equal(t, []store.Seq{2}, inbox(t, s))
	require.Equal(t, int64(1), counts(t, s).Inbox)
}
