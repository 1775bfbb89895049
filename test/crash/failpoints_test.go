package crash_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// death is one way to die, and what must come of the message that it strikes.
type death struct {
	at     string // the failpoint, for the first op of that kind
	answer int    // the endpoint's first answer; default: 200
	fault  bool   // the platform refuses the first reply
	once   bool   // a reply is tried once only
	// tries are the numbers of the handler's runs, early what they are instead if the
	// daemon is back before the time of the next try; nil if that changes nothing.
	tries, early []int
	// sends and doubts count what the platform took, and what the daemon said of it.
	sends, doubts int
	// deadIn and deadOut count dead letters.
	deadIn, deadOut int64
}

// deaths are all writes of a life, and the two moments at each.
var deaths = []death{
	// Not on disk, so not acknowledged: the platform pushes again.
	{at: "before append", tries: []int{1}, sends: 1},
	// On disk and not acknowledged: the second push is recognised. Nobody knows
	// that no handler had it, so the run is the second one.
	{at: "after append", tries: []int{2}, sends: 1},

	// Handled and not recorded: handled again. The reply of the first run is lost,
	// that of the second is sent.
	{at: "before finish", tries: []int{1, 2}, sends: 1},
	// The reply is in the transaction of the outcome.
	{at: "after finish", tries: []int{1}, sends: 1},

	{at: "before postpone", answer: http.StatusServiceUnavailable, tries: []int{1, 2}, sends: 1},
	// A message that waits for its next try has certainly not begun it.
	{
		at: "after postpone", answer: http.StatusServiceUnavailable,
		tries: []int{1, 3}, early: []int{1, 2}, sends: 1,
	},

	// A refusal that was not recorded is asked for again.
	{at: "before bury", answer: http.StatusBadRequest, tries: []int{1, 2}, sends: 1},
	{at: "after bury", answer: http.StatusBadRequest, tries: []int{1}, deadIn: 1},

	{at: "before begin", tries: []int{1}, sends: 1},
	// The only case in which the daemon doubts without cause.
	{at: "after begin", tries: []int{1}, sends: 1, doubts: 1},
	// The only case in which a person may see a reply twice.
	{at: "before sent", tries: []int{1}, sends: 2, doubts: 1},
	{at: "after sent", tries: []int{1}, sends: 1},

	{at: "before again", fault: true, tries: []int{1}, sends: 1, doubts: 1},
	{at: "after again", fault: true, tries: []int{1}, sends: 1},
	{at: "before discard", fault: true, once: true, tries: []int{1}, sends: 1, doubts: 1},
	{at: "after discard", fault: true, once: true, tries: []int{1}, deadOut: 1},
}

// TestFailpoints lets the daemon die at every write of a message's life, starts it
// again, and looks at what became of the message and of one behind it.
func TestFailpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes")
	}
	for _, d := range deaths {
		t.Run(d.at, func(t *testing.T) {
			t.Parallel()
			d.play(t)
		})
	}
}

func (d death) play(t *testing.T) {
	h := newHarness(t, 500*time.Millisecond)
	h.more = "outbound: {waits: [50ms]}"
	if d.once {
		h.more = "outbound: {attempts: 1}"
	}
	h.answer = func(id message.ID, before int) int {
		if d.answer != 0 && before == 0 && id == "msg-0-1" {
			return d.answer
		}
		return http.StatusOK
	}
	if d.fault {
		h.gw.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Unavailable())
	}
	p := h.start(failing, "PENSTOCK_FAILPOINT="+d.at+" 1")
	struck := h.push(0)
	h.died(p)
	p = h.start(failing)
	behind := h.push(0)
	h.await("end of both", patience, func() bool {
		return h.book.sendsOf(behind.id) > 0 && h.book.isAcked(struck.id) &&
			h.book.sendsOf(struck.id) >= d.sends
	})
	h.stop(p)

	tries := h.book.triesOf(struck.id)
	if d.early == nil || !slices.Equal(d.early, tries) {
		require.Equal(t, d.tries, tries)
	}
	require.Equal(t, d.sends, h.book.sendsOf(struck.id))
	maybe := h.inDoubt()
	require.Equal(t, d.doubts, maybe[struck.id])
	left := h.left()
	require.Equal(t, []int64{0, 0, d.deadIn, d.deadOut},
		[]int64{left.Inbox, left.Outbox, left.DeadInbox, left.DeadOutbox})
	if d.deadIn+d.deadOut == 0 {
		_, wrong := h.book.compare(maybe)
		require.Empty(t, wrong)
	}
}
