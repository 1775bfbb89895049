package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// stalled gives a socket whose writer is in the middle of a first write, so that
// what is sent next is ordered by the lanes alone.
func stalled(t *testing.T, cfg wire.Config) (*wire.Socket, *gated) {
	t.Helper()
	cfg.Server = true
	g := newGated()
	s := wire.NewSocket(g, cfg)
	require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("first")))
	synctest.Wait()
	return s, g
}

// letters writes everything that waits and gives the first letter of each frame
// in the order of writing. Before each write, feed may send more.
func (g *gated) letters(writes int, feed func()) string {
	var out bytes.Buffer
	for range writes {
		synctest.Wait()
		feed()
		g.permit <- nil
		for b := <-g.wrote; len(b) > 0; {
			n, header := int(b[1]&0x7f), 2
			switch n {
			case 126:
				n, header = int(b[2])<<8|int(b[3]), 4
			case 127:
				n, header = int(b[6])<<24|int(b[7])<<16|int(b[8])<<8|int(b[9]), 10
			}
			out.WriteByte(b[header])
			b = b[header+n:]
		}
	}
	return out.String()
}

func TestBulkLeavesOnceInSixteen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{})
		for range 3 {
			require.NoError(t, s.Send(wire.Bulk, wire.Text, []byte("b")))
		}
		for range 40 {
			require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("n")))
		}
		for range 3 {
			require.NoError(t, s.Send(wire.Critical, wire.Text, []byte("c")))
		}
		got := g.letters(2, func() {})[1:]
		n := func(k int) string { return strings.Repeat("n", k) }
		require.Equal(t, "ccc"+n(12)+"b"+n(15)+"b"+n(13)+"b", got)
		s.Close()
	})
}

// TestNoLaneStarves keeps the higher lanes full for ever.
func TestNoLaneStarves(t *testing.T) {
	for _, size := range []int{1, 3 << 10, 70 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, g := stalled(t, wire.Config{})
				body := func(c string) []byte { return []byte(strings.Repeat(c, size)) }
				flood := func() {
					for s.Send(wire.Control, wire.Text, []byte(strings.Repeat("x", 2<<10))) == nil {
					}
					for s.Send(wire.Critical, wire.Text, body("c")) == nil {
					}
				}
				require.NoError(t, s.Send(wire.Bulk, wire.Text, body("b")))
				require.NoError(t, s.Send(wire.Normal, wire.Text, body("n")))
				got := g.letters(60, flood)[1:]
				require.Contains(t, got, "n")
				require.Contains(t, got, "b")
				require.LessOrEqual(t, strings.Index(got, "b"), 16, "%s", got)
				content := strings.ReplaceAll(got, "x", "")
				require.LessOrEqual(t, strings.Index(content, "n"), 17, "%s", content)
				s.Close()
			})
		})
	}
}

// TestBulkIsNeverPassedBySeventeen feeds every lane at random times.
func TestBulkIsNeverPassedBySeventeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{})
		step := 0
		got := g.letters(400, func() {
			step++
			for l, c := range map[wire.Lane]string{
				wire.Control: "x", wire.Critical: "c", wire.Normal: "n", wire.Bulk: "b",
			} {
				for range (step*7 + int(l)*5) % 11 {
					_ = s.Send(l, wire.Text, []byte(c))
				}
			}
			_ = s.Send(wire.Bulk, wire.Text, []byte("b")) // one waits always
		})[1:]
		for run := range strings.SplitSeq(got, "b") {
			require.LessOrEqual(t, len(run), 16, "%s", run)
		}
		s.Close()
	})
}

func TestControlWaitsForOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{})
		for range 15 {
			require.NoError(t, s.Send(wire.Bulk, wire.Text, bytes.Repeat([]byte("b"), 1<<20)))
		}
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("n")))
		g.permit <- nil // "first"
		g.permit <- nil // "n", which is small, apart from what is big
		synctest.Wait() // a bulk frame is being written
		require.NoError(t, s.Send(wire.Control, wire.Pong, []byte("x")))
		require.Equal(t, "fnbx", g.lettersOf(2)+g.letters(2, func() {}))
		s.Close()
	})
}

// lettersOf reads writes that have been permitted already.
func (g *gated) lettersOf(writes int) (out string) {
	for range writes {
		out += string((<-g.wrote)[2:3])
	}
	return out
}

func TestLaneNames(t *testing.T) {
	require.Equal(t, "control critical normal bulk", fmt.Sprint(
		wire.Control, " ", wire.Critical, " ", wire.Normal, " ", wire.Bulk))
	require.Equal(t, wire.Normal, wire.LaneFor(wire.BulkSize-1))
	require.Equal(t, wire.Bulk, wire.LaneFor(wire.BulkSize))
}

func TestWhatWaitsLeavesInFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{Frames: 256})
		for range 256 {
			require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 1000)))
		}
		for range 5 {
			g.permit <- nil
		}
		synctest.Wait()
		require.Equal(t, wire.Stats{Taken: 257, Written: 257, Writes: 5}, s.Stats())
		s.Close()
	})
}
