package simulate

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// knock asks for a ticket and gives what is answered.
func knock(t *testing.T, url, body string) (status int, ticket string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/v1.0/gateway/connections/open", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	var answer struct{ Ticket string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	require.NoError(t, res.Body.Close())
	return res.StatusCode, answer.Ticket
}

func request(id, secret string) string {
	return `{"clientId":"` + id + `","clientSecret":"` + secret + `","subscriptions":[{"type":"EVENT","topic":"*"}]}`
}

// dial tries a ticket without a WebSocket's handshake.
func dial(t *testing.T, url, ticket string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url + "/connect?ticket=" + ticket)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

// What is refused is shown, and a storm of it in few lines that count it.
func TestRefusalsAreShown(t *testing.T) {
	in, typed := io.Pipe()
	r, url := simulate(t, Options{In: in})
	const storm = 50
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, body := range []string{"{}", request("hunter2", "demo"), request("demo", "hunter2")} {
			status, _ := knock(t, url, body)
			require.GreaterOrEqual(t, status, 400)
		}
		for range storm {
			require.Equal(t, 401, dial(t, url, "hunter2"))
		}
		_, err := io.WriteString(typed, "/quit\n")
		require.NoError(t, err)
	}()
	lines, times := map[string]int{}, map[string]int{}
	for {
		var e event
		require.NoError(t, r.events.Decode(&e))
		if e.Event == evEnd {
			break
		}
		require.Equal(t, evRefused, e.Event)
		require.NotEmpty(t, e.Remote)
		require.NotContains(t, e.line(), "hunter2")
		line, _, _ := strings.Cut(e.line(), " (")
		lines[line]++
		times[line] += e.Times
	}
	<-done
	require.NoError(t, <-r.ended)
	require.NoError(t, typed.Close())
	const dials = "dial refused: the ticket is unknown or used"
	require.Equal(t, map[string]int{
		"ticket refused: it has no clientId, or no subscriptions": 1,
		`ticket refused: the client id is not "demo"`:             1,
		`ticket refused: the client secret is not that of "demo"`: 1,
		dials: storm,
	}, times)
	require.Less(t, lines[dials], storm/4)
}

func TestTicketsNeedNoEscapingUnlessThatIsAskedFor(t *testing.T) {
	for awkward, status := range map[bool]int{false: http.StatusBadRequest, true: http.StatusUnauthorized} {
		in, typed := io.Pipe()
		r, url := simulate(t, Options{In: in, AwkwardTickets: awkward})
		got, ticket := knock(t, url, request("demo", "demo"))
		require.Equal(t, http.StatusOK, got)
		result := make(chan int, 1)
		go func() {
			result <- dial(t, url, ticket) // a good ticket lacks the handshake only
			_, err := io.WriteString(typed, "/quit\n")
			require.NoError(t, err)
		}()
		if awkward {
			require.Contains(t, r.until(evRefused).Reason, "has it been escaped in the URL?")
		}
		r.end(nil)
		require.Equal(t, status, <-result)
		require.NoError(t, typed.Close())
	}
}

// Refusals for one reason are shown once a second, and none is left out of the count.
func TestRefusalsAreCounted(t *testing.T) {
	r, began := refusals{}, time.Now()
	ask := func(reason string, after time.Duration) (times int, due bool) {
		e := event{Reason: reason}
		due = r.due(&e, began.Add(after))
		return e.Times, due
	}
	for _, tt := range []struct {
		reason string
		after  time.Duration
		times  int
		due    bool
	}{
		{"a", 0, 1, true},
		{"a", 1, 1, false},
		{"b", 2, 1, true},
		{"a", 3, 2, false},
		{"a", refusedEvery, 3, true},
		{"a", refusedEvery + 1, 1, false},
	} {
		times, due := ask(tt.reason, tt.after)
		require.Equal(t, tt.times, times)
		require.Equal(t, tt.due, due)
	}
	rest := r.rest()
	require.Len(t, rest, 1)
	require.Equal(t, 1, rest[0].Times)
	require.Equal(t, "a", rest[0].Reason)
	require.Empty(t, r.rest())
}

func TestRefusalsForPeople(t *testing.T) {
	o := Options{}.withDefaults()
	e := refusedEvent(dingtalktest.Refusal{
		Route: dingtalktest.RouteConnect, Reason: dingtalktest.RefusedExpired,
	}, o)
	require.Equal(t, "dial refused: the ticket is too old", e.line())
	e.Times = 7
	require.Equal(t, "dial refused: the ticket is too old (7 times)", e.line())
}
