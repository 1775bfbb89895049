package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store/sqlite"
	"github.com/penstock-io/penstock/test/system"
)

// site is a service with its store in a file, and its platform, inside a bubble.
type site struct {
	t    *testing.T
	path string // of the store
	net  *system.Network
	gw   *dingtalktest.Gateway
	app  *dingtalktest.App
	cfg  *config.Config
	svc  *system.Service
}

func newSite(t *testing.T, path string) *site {
	s := &site{t: t, path: path, net: &system.Network{}}
	s.gw = dingtalktest.Serve(t, dingtalktest.Config{
		Listener: s.net.Listen("127.0.0.1:1"), Apps: []dingtalktest.Credentials{cred("a")},
	})
	s.app = s.gw.App("")
	s.cfg = system.Config(system.Installation("a", s.gw, cred("a")))
	system.OnFile(s.cfg, path)
	return s
}

// start starts the service and waits for its socket.
func (s *site) start() *dingtalktest.Session {
	s.t.Helper()
	s.svc = system.Start(s.t, s.cfg, system.Options{Network: s.net})
	synctest.Wait()
	all := s.app.Sessions()
	require.Len(s.t, all, 1)
	return all[0]
}

// pass lets d go by and everything that becomes due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// acked are the messages that were acknowledged, events only with success.
func (s *site) acked() (ids []message.ID) {
	for _, a := range s.app.Acks() {
		if a.Code == 200 && !strings.Contains(a.Data, "LATER") && !slices.Contains(ids, a.Message) {
			ids = append(ids, a.Message)
		}
	}
	return ids
}

// handled are the messages that were handled, in order.
func (s *site) handled() (ids []message.ID) {
	for _, r := range s.svc.Record.Runs() {
		ids = append(ids, r.Message.ID)
	}
	return ids
}

// long is more than finds room in a file that is nearly full.
var long = strings.Repeat("words ", 2000)

// trouble is something that is wrong with the disk for a while.
type trouble struct {
	name string
	// configure and begin bring it about, end takes it away.
	configure func(*config.Config)
	begin     func(*site) (end func())
	says      error // what the health page quotes
}

var troubles = []trouble{
	{
		name: "full", says: sqlite.ErrDiskFull,
		configure: func(c *config.Config) { c.Store.MaxFile = 400 << 10 },
		begin:     (*site).fill,
	},
	{name: "moved", begin: (*site).moveFile, says: sqlite.ErrMoved},
	{name: "locked", begin: (*site).lockFile, says: sqlite.ErrLocked},
}

// While the disk cannot be written nothing is acknowledged that is not on it, events
// are asked for again, pings are answered and the health page says why; when it can
// be written again everything goes on by itself, and nothing is lost.
func TestTroubleWithTheDisk(t *testing.T) {
	for _, tr := range troubles {
		t.Run(tr.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "penstock.db")
			synctest.Test(t, func(t *testing.T) { tr.play(newSite(t, path)) })
		})
	}
}

func (tr trouble) play(s *site) {
	t := s.t
	if tr.configure != nil {
		tr.configure(s.cfg)
	}
	session := s.start()
	before, err := s.app.Push(dingtalktest.Text("before", "before"))
	require.NoError(t, err)
	pass(time.Second)
	require.Equal(t, []message.ID{before.ID()}, s.acked())
	require.True(t, s.svc.Health("a").Ready)

	end := tr.begin(s)
	known, pongs := len(s.acked()), session.Info().Pongs
	robot, err := s.app.Push(dingtalktest.Text("robot", long))
	require.NoError(t, err)
	event, err := s.app.Push(dingtalktest.Event{Data: map[string]string{"long": long}})
	require.NoError(t, err)
	pass(35 * time.Second)
	require.Len(t, s.acked(), known, "what is not on the disk was acknowledged")
	require.True(t, slices.ContainsFunc(s.app.Acks(), func(a dingtalktest.Ack) bool {
		return a.Message == event.ID() && strings.Contains(a.Data, "LATER")
	}), "the event was not asked for again")
	require.Greater(t, session.Info().Pongs, pongs)
	require.Len(t, s.app.Sessions(), 1, "the session is not to blame")
	health := s.svc.Health("a")
	require.False(t, health.Ready)
	require.Equal(t, "trouble", health.Code)
	require.Contains(t, health.Error, tr.says.Error())

	end()
	pass(3 * time.Minute)
	require.True(t, s.svc.Health("a").Ready, s.svc.Health("a").Error)
	require.Contains(t, s.acked(), robot.ID())
	handled := s.handled()
	require.Len(t, handled, len(slices.Compact(slices.Sorted(slices.Values(handled)))), "handled twice")
	require.ElementsMatch(t, s.acked(), handled)
	require.NoError(t, s.svc.Stop())
}

// What a handler did while the disk could not be written is recorded later; it is
// not done again, and what it answered is sent once.
func TestHandlerThatEndsInTrouble(t *testing.T) {
	for _, tr := range troubles {
		if tr.configure != nil {
			continue // a full disk has room for what makes room
		}
		t.Run(tr.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "penstock.db")
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, path)
				s.start()
				s.svc.Record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
					<-time.After(5 * time.Second)
					return router.Result{Replies: []message.Reply{{Text: "done"}}}, nil
				})
				_, err := s.app.Push(text("question"))
				require.NoError(t, err)
				pass(time.Second)
				end := tr.begin(s)
				pass(40 * time.Second)
				require.Empty(t, s.app.Sent(), "what is not on the disk was answered")
				end()
				pass(time.Minute)
				require.Len(t, s.handled(), 1)
				require.Len(t, s.app.Sent(), 1)
				require.NoError(t, s.svc.Stop())
			})
		})
	}
}

// fill pushes messages that nobody handles until the file is as large as it may be.
func (s *site) fill() (end func()) {
	s.t.Helper()
	release := make(chan struct{})
	s.svc.Record.Do(func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return router.Result{}, ctx.Err()
	})
	for n := 0; s.svc.Health("a").Ready; n++ {
		require.Less(s.t, n, 100, "there is no end to the file")
		_, err := s.app.Push(dingtalktest.Text("fill", long))
		require.NoError(s.t, err)
		pass(10 * time.Millisecond)
	}
	return func() { close(release) }
}

// moveFile takes the file away under the running service.
func (s *site) moveFile() (end func()) {
	require.NoError(s.t, os.Rename(s.path, s.path+".away"))
	return func() { require.NoError(s.t, os.Rename(s.path+".away", s.path)) }
}

// lockFile locks the file as another program would.
func (s *site) lockFile() (end func()) {
	db, err := sql.Open("sqlite", s.path)
	require.NoError(s.t, err)
	c, err := db.Conn(s.t.Context())
	require.NoError(s.t, err)
	_, err = c.ExecContext(s.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(s.t, err)
	return func() {
		_, err := c.ExecContext(s.t.Context(), "ROLLBACK")
		require.NoError(s.t, errors.Join(err, c.Close(), db.Close()))
	}
}

// A second service on the same file is refused and names the first, which goes on.
func TestTwoServicesOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, path)
		s.start()
		second := system.Start(t, s.cfg, system.Options{Network: s.net})
		<-second.Done()
		var inUse *sqlite.InUseError
		require.ErrorAs(t, second.Stop(), &inUse)
		require.Equal(t, os.Getpid(), inUse.PID)
		require.Equal(t, 1, s.app.Stats().Dials, "it connected all the same")

		p, err := s.app.Push(dingtalktest.Text("c", "hello"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []message.ID{p.ID()}, s.handled())
		require.NoError(t, s.svc.Stop())
	})
}

// What cannot be used as a store is refused before anything is connected, and is
// left as it is.
func TestFilesThatCannotBeUsed(t *testing.T) {
	directory := t.TempDir()
	newer := filepath.Join(t.TempDir(), "newer.db")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: newer})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	raise(t, newer)
	was, err := os.ReadFile(newer)
	require.NoError(t, err)

	for path, wrong := range map[string]func(error){
		directory: func(err error) { require.ErrorIs(t, err, sqlite.ErrReadOnly) },
		newer: func(err error) {
			var version *sqlite.VersionError
			require.ErrorAs(t, err, &version)
			require.Equal(t, 99, version.File)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, path)
			svc := system.Start(t, s.cfg, system.Options{Network: s.net})
			<-svc.Done()
			wrong(svc.Stop())
			require.Zero(t, s.app.Stats().Opens)
		})
	}
	is, err := os.ReadFile(newer)
	require.NoError(t, err)
	require.Equal(t, was, is)
}

// raise writes the schema version of a program that does not exist yet.
func raise(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA user_version = 99")
	require.NoError(t, errors.Join(err, db.Close()))
}

// A clock that is set back by an hour forgets no message, handles none twice, and
// holds nothing up but a retry that waited.
func TestClockSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	hello := text("hello")
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Hour) // every bubble begins at the same time
		s := newSite(t, path)
		s.start()
		_, err := s.app.Push(hello)
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, []message.ID{hello.ID}, s.handled())
		require.NoError(t, s.svc.Stop())
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, path)
		s.start()
		for _, m := range []dingtalktest.Robot{hello, text("new")} {
			_, err := s.app.Push(m)
			require.NoError(t, err)
		}
		pass(time.Second)
		require.Len(t, s.acked(), 2)
		require.Equal(t, []message.ID{text("new").ID}, s.handled())
		require.NoError(t, s.svc.Stop())
	})
}
