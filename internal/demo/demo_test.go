package demo

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// played makes a ledger with one message that was pushed.
func played(t *testing.T) (l *ledger, k chat, id message.ID) {
	t.Helper()
	l, id = newLedger(), "msg"
	l.push(id, 1, "reply")
	return l, chat{1, "bot", "cid"}, id
}

func (l *ledger) sum() (s Summary) {
	l.fill(&s)
	return s
}

func TestOnlyTheKillExcusesASecondRun(t *testing.T) {
	reply := dingtalktest.Sent{Text: "reply"}
	for name, tt := range map[string]struct {
		life, attempt int
		replied       bool
		excused       bool
	}{
		"after the kill, as the second try":   {life: 2, attempt: 2, excused: true},
		"after the kill, as the first try":    {life: 2, attempt: 1},
		"without a kill":                      {life: 1, attempt: 2},
		"after the kill, though it was ended": {life: 2, attempt: 2, replied: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, k, id := played(t)
			l.begin(k, id, 1)
			l.end(k)
			if tt.replied {
				l.sent(reply)
			}
			k.life = tt.life
			l.begin(k, id, tt.attempt)
			if !tt.replied {
				l.sent(reply)
			}
			s := l.sum()
			require.Zero(t, s.Lost)
			require.Equal(t, tt.excused, s.Again == 1)
			require.Equal(t, tt.excused, s.OK())
		})
	}
}

func TestOnlyADoubtExcusesASecondReply(t *testing.T) {
	for doubts := range 2 {
		l, k, id := played(t)
		l.begin(k, id, 1)
		l.sent(dingtalktest.Sent{Text: "reply"})
		l.sent(dingtalktest.Sent{Text: "reply"})
		if doubts > 0 {
			l.doubt(id)
		}
		s := l.sum()
		require.Equal(t, doubts, s.Doubted)
		require.Equal(t, 1-doubts, s.Duplicates)
	}
}

func TestWhatIsMissingIsLost(t *testing.T) {
	l, k, id := played(t)
	require.Equal(t, 1, l.sum().Lost)
	l.begin(k, id, 1)
	require.Equal(t, 1, l.sum().Lost, "it was not answered")
	l.begin(k, id, 1)
	require.Equal(t, 1, l.sum().Inversions, "two at a time")
}

func TestAServiceThatDoesNotStart(t *testing.T) {
	_, err := Run(t.Context(), Options{Program: "/nowhere/penstock"})
	require.ErrorContains(t, err, "start the service")

	program, err := exec.LookPath("false")
	if err != nil {
		t.Skip("there is no program that fails")
	}
	began := time.Now()
	_, err = Run(t.Context(), Options{Program: program})
	require.ErrorIs(t, err, errEnded)
	require.Less(t, time.Since(began), startFor, "it waited for what cannot come")
}
