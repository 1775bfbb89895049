package integrations_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
)

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take gives the lines so far and forgets them.
func (l *lines) take(t *testing.T) (out []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for dec := json.NewDecoder(&l.buf); dec.More(); {
		var line map[string]any
		require.NoError(t, dec.Decode(&line))
		require.Equal(t, "support", line["installation"])
		out = append(out, line)
	}
	l.buf.Reset()
	return out
}

func (l *lines) config(c *integrations.Config) {
	c.Logger = slog.New(slog.NewJSONHandler(l, nil))
}

func levels(log []map[string]any) (out []string) {
	for _, line := range log {
		out = append(out, line["level"].(string))
	}
	return out
}

func TestFailuresAreSummarised(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		acts := make([]act, 100)
		for i := range acts {
			acts[i] = failing(integrations.Lost)
		}
		var l lines
		r := launch(t, newFake(append(acts, steady)...), l.config)
		r.pass(100 * time.Minute)
		log := l.take(t)
		require.Less(t, len(log), 20)
		told := 0
		for _, line := range log[:len(log)-1] {
			require.Equal(t, "WARN", line["level"])
			require.Contains(t, line, "redial_in") // by chance it may be 0
			told += 1 + int(line["left_out"].(float64))
			require.EqualValues(t, told, line["failures"], "a failure is neither told nor counted")
		}
		require.Equal(t, "INFO", log[len(log)-1]["level"])
		require.EqualValues(t, 100, log[len(log)-1]["failures"])
	})
}

func TestFlappingIsSummarised(t *testing.T) {
	for _, why := range []integrations.Why{integrations.Lost, integrations.Asked} {
		t.Run(why.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var l lines
				r := launch(t, newFake(lasting(300*time.Millisecond, why)), l.config)
				r.pass(time.Hour)
				require.Greater(t, len(r.gate.log()), 60)
				require.Less(t, len(l.take(t)), 35)
			})
		})
	}
}

func TestPlannedRedialIsNoWarning(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l lines
		old := act{retireAt: time.Hour, within: 10 * time.Second, lives: time.Hour + time.Minute}
		r := launch(t, newFake(old, steady), l.config)
		r.pass(2 * time.Hour)
		require.Equal(t, []string{"INFO", "INFO", "INFO"}, levels(l.take(t)))
	})
}

func TestNewKindOfFailureIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lost, refused := failing(integrations.Lost), failing(integrations.Refused)
		refused.end.Code = "auth_failed"
		var l lines
		r := launch(t, newFake(lost, lost, lost, lost, refused, refused, refused, steady), l.config)
		r.pass(15 * time.Second)
		log := l.take(t)
		require.Equal(t, []string{"WARN", "WARN", "WARN", "ERROR"}, levels(log))
		log = log[3:]
		require.Equal(t, "auth_failed", log[0]["code"])
		require.EqualValues(t, 5, log[0]["failures"])
		require.NotEmpty(t, log[0]["probe_in"])
		r.pass(6 * time.Minute)
		require.Empty(t, l.take(t))
	})
}

func TestDisplacedIsOneError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l lines
		r := launch(t, newFake(lasting(time.Hour, integrations.Displaced)), l.config)
		r.pass(100 * time.Hour)
		require.Equal(t, []string{"INFO", "ERROR"}, levels(l.take(t)))
	})
}

func TestErrorTextIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := integrations.End{Err: errors.New(strings.Repeat("é", 10_000))}
		var l lines
		r := launch(t, newFake(act{liveAt: never, retireAt: never, end: end}), l.config)
		require.Less(t, len(r.Status().LastError), 600)
		require.Equal(t, r.Status().LastError, l.take(t)[0]["error"], "cut inside a letter")
	})
}

func TestPanicIsToldWithItsStack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l lines
		launch(t, newFake(act{panics: "hunter2"}), l.config)
		log := l.take(t)
		require.Contains(t, log[0]["stack"], "(*fake).Run")
		require.NotContains(t, log[0]["stack"], "hunter2")
	})
}
