package wire_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/wire"
)

func tracked(id, payload string) wire.Frame {
	f := text(wire.Normal, payload)
	f.ID = id
	return f
}

func TestTrackedFrameLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := wire.NewBudget(wire.BudgetConfig{})
		s, g := stalled(t, wire.Config{Peer: b.Peer(), Hooks: c.hooks()})
		tr := s.Tracker()
		require.Equal(t, wire.Unknown, tr.State("1"))
		require.NoError(t, s.Try(tracked("1", "one")))
		require.Equal(t, wire.Queued, tr.State("1"))
		var dup *wire.DuplicateError
		require.ErrorAs(t, s.Try(tracked("1", "one")), &dup)
		require.Equal(t, wire.Queued, dup.State)
		g.permit <- nil
		g.permit <- nil
		synctest.Wait()
		require.Equal(t, wire.Written, tr.State("1"))
		require.Equal(t, wire.Usage{Content: 5}, b.Usage(), "kept bytes stay reserved")

		state, err := s.Resend("1")
		require.NoError(t, err)
		require.Equal(t, wire.Queued, state)
		state, err = s.Resend("1")
		require.NoError(t, err)
		require.Equal(t, wire.Queued, state, "once is enough")
		g.permit <- nil
		require.Equal(t, []string{"1:first", "1:one", "1:one"},
			append(append(frames(<-g.wrote), frames(<-g.wrote)...), frames(<-g.wrote)...))
		synctest.Wait()

		require.Equal(t, wire.Written, tr.Ack("1"))
		require.Equal(t, wire.Acked, tr.Ack("1"), "a second acknowledgement is harmless")
		require.Equal(t, wire.Unknown, tr.Ack("other"))
		require.Equal(t, wire.Usage{}, b.Usage())
		state, err = s.Resend("1")
		require.NoError(t, err)
		require.Equal(t, wire.Acked, state)
		require.ErrorAs(t, s.Try(tracked("1", "one")), &dup)
		require.Equal(t, wire.Acked, dup.State)
		require.Equal(t, wire.TrackerStats{Acked: 1, Resent: 1}, tr.Stats())
		s.Close()
		require.Equal(t, 1, c.resent)
		require.Equal(t, 3, c.sent)
		require.Zero(t, c.drops())
	})
}

func TestAckDuringAResendFreesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{})
		s, g := stalled(t, wire.Config{Peer: b.Peer()})
		require.NoError(t, s.Try(tracked("1", "one")))
		require.NoError(t, s.Try(tracked("2", strings.Repeat("x", 10<<10))))
		g.permit <- nil
		g.permit <- nil
		synctest.Wait()
		for _, id := range []string{"1", "2"} {
			_, err := s.Resend(id)
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, wire.Queued, s.Tracker().Ack(id))
		}
		require.Equal(t, 5+10<<10+4, b.Usage().Content, "the writer still needs them")
		g.permit <- nil
		g.permit <- nil
		synctest.Wait()
		require.Equal(t, wire.Usage{}, b.Usage())
		require.Equal(t, wire.Acked, s.Tracker().State("1"))
		s.Close()
	})
}

func TestOldestIsEvicted(t *testing.T) {
	for name, cfg := range map[string]wire.Config{
		"by count": {TrackFrames: 2},
		"by bytes": {TrackBytes: 10},
	} {
		t.Run(name, func(t *testing.T) {
			var c tally
			b := wire.NewBudget(wire.BudgetConfig{})
			cfg.Peer, cfg.Hooks = b.Peer(), c.hooks()
			s, peer := pipe(t, cfg)
			go func() { _, _ = io.Copy(io.Discard, peer) }()
			for _, id := range []string{"1", "2", "3"} {
				require.NoError(t, s.Write(context.Background(), tracked(id, "abc")))
			}
			tr := s.Tracker()
			require.Equal(t, wire.Evicted, tr.State("1"))
			require.Equal(t, wire.Written, tr.State("2"))
			require.Equal(t, wire.TrackerStats{Frames: 2, Bytes: 10, Evicted: 1}, tr.Stats())
			require.Equal(t, 10, b.Usage().Content)
			require.Equal(t, 1, c.evicted)
			state, err := s.Resend("1")
			require.NoError(t, err)
			require.Equal(t, wire.Evicted, state)
			require.Equal(t, wire.Evicted, tr.Ack("1"), "a late acknowledgement counts")
			require.Equal(t, wire.Acked, tr.State("1"))
			s.Close()
			require.Equal(t, wire.Usage{}, b.Usage())
			require.Equal(t, wire.Written, tr.Ack("2"), "also after the end")
			_, err = s.Resend("3")
			require.ErrorIs(t, err, wire.ErrClosed)
			_ = peer.Close()
		})
	}
}

func TestDroppedFrameMayBeSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := stalled(t, wire.Config{Frames: 1})
		require.NoError(t, s.Try(tracked("1", "one")))
		require.ErrorIs(t, s.Try(tracked("2", "two")), wire.ErrFull)
		require.Equal(t, wire.Unknown, s.Tracker().State("2"))
		require.ErrorIs(t, s.Try(tracked("2", "two")), wire.ErrFull)
		s.Close()
		require.Equal(t, wire.Unknown, s.Tracker().State("1"))
	})
}

func TestFailedResendKeepsTheFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{})
		s, g := stalled(t, wire.Config{Frames: 1, Peer: b.Peer()})
		require.NoError(t, s.Try(tracked("1", "one")))
		g.permit <- nil
		g.permit <- nil
		synctest.Wait()
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		synctest.Wait()
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		state, err := s.Resend("1")
		require.ErrorIs(t, err, wire.ErrFull)
		require.Equal(t, wire.Written, state)
		require.Equal(t, 1, s.Tracker().Stats().Frames)
		s.Close()
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

func TestIdsAreForgottenInTheEnd(t *testing.T) {
	s, peer := pipe(t, wire.Config{TrackFrames: 3})
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	for i := range 10 {
		id := fmt.Sprint(i)
		require.NoError(t, s.Write(context.Background(), tracked(id, "")))
		require.Equal(t, wire.Written, s.Tracker().Ack(id))
	}
	require.Equal(t, wire.Unknown, s.Tracker().State("6"))
	require.Equal(t, wire.Acked, s.Tracker().State("7"))
	s.Close()
	_ = peer.Close()
}

func TestStateNames(t *testing.T) {
	require.Equal(t, "unknown queued written acked evicted", fmt.Sprint(
		wire.Unknown, " ", wire.Queued, " ", wire.Written, " ", wire.Acked, " ", wire.Evicted))
	dup := &wire.DuplicateError{State: wire.Acked}
	require.Equal(t, "frame of this id is acked already", dup.Error())
}

// TestTrackerAgainstModel sends, acknowledges and resends at random, and compares
// states with a model that knows only the rules.
func TestTrackerAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		b := wire.NewBudget(wire.BudgetConfig{})
		s, peer := pipe(t, wire.Config{TrackFrames: limit, Peer: b.Peer()})
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		model := map[string]wire.State{}
		var kept, graves []string
		bury := func(id string) {
			if graves = append(graves, id); len(graves) > limit {
				delete(model, graves[0])
				graves = graves[1:]
			}
		}
		unkeep := func(id string) {
			for i, k := range kept {
				if k == id {
					kept = append(kept[:i:i], kept[i+1:]...)
					return
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(rt, "id")
			switch rapid.SampledFrom([]string{"send", "send", "ack", "resend"}).Draw(rt, "step") {
			case "send":
				err := s.Write(context.Background(), tracked(id, "abc"))
				if was, ok := model[id]; ok {
					require.Equal(rt, &wire.DuplicateError{State: was}, err)
					continue
				}
				require.NoError(rt, err)
				model[id], kept = wire.Written, append(kept, id)
				if len(kept) > limit {
					model[kept[0]] = wire.Evicted
					bury(kept[0])
					kept = kept[1:]
				}
			case "ack":
				was := model[id]
				require.Equal(rt, was, s.Tracker().Ack(id))
				if was == wire.Written {
					unkeep(id)
					bury(id)
				}
				if _, ok := model[id]; ok {
					model[id] = wire.Acked
				}
			case "resend":
				state, err := s.Resend(id)
				require.NoError(rt, err)
				if model[id] != wire.Written {
					require.Equal(rt, model[id], state)
					continue
				}
				require.Equal(rt, wire.Queued, state)
				require.NoError(rt, s.Write(context.Background(), text(wire.Normal, "behind it")))
				unkeep(id)
				kept = append(kept, id)
			}
			require.Equal(rt, len(kept), s.Tracker().Stats().Frames)
			require.Equal(rt, 5*len(kept), b.Usage().Content)
			require.Equal(rt, model[id], s.Tracker().State(id))
		}
		s.Close()
		_ = peer.Close()
		require.Equal(rt, wire.Usage{}, b.Usage())
	})
}
