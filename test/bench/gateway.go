package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// What the gateway process is asked for.
const (
	wordHello  = "hello"  // gives the URL
	wordAwait  = "await"  // awaitArg: waits for sockets
	wordBlast  = "blast"  // BlastConfig, gives a BlastResult
	wordPace   = "pace"   // paceArg, gives how many were pushed
	wordRedial = "redial" // redialArg, gives a redialResult
	wordHole   = "hole"   // black-holes the socket, gives the time to the next one
)

type awaitArg struct{ Apps, Sockets int }

type paceArg struct {
	Rate, Conversations int
	Duration            time.Duration
}

type redialArg struct {
	Times, Rate int
	Every       time.Duration
}

type redialResult struct {
	Blast dingtalktest.BlastResult
	Gaps  []time.Duration // from each notice to the first frame on a new socket
}

// maxApps is how many bots the gateway knows.
const maxApps = 2000

// gateway is the simulated platform in a process of its own.
type gateway struct{ gw *dingtalktest.Gateway }

// runGateway serves a gateway until standard input ends.
func runGateway() error {
	cfg := dingtalktest.Config{
		PlainTickets: true, // some peers put them into the URL as they are
		RobotTimeout: 10 * time.Second, Linger: 2 * time.Second, Record: 1024,
	}
	for i := range maxApps {
		cfg.Apps = append(cfg.Apps, dingtalktest.Credentials{
			ClientID: fmt.Sprintf("bench-%d", i), Secret: "bench",
		})
	}
	gw, err := dingtalktest.New(cfg)
	if err != nil {
		return err
	}
	if err := gw.Listen(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gw.Run(ctx) }()
	g := &gateway{gw}
	err = line.Serve(map[string]line.Word{
		wordHello: func(json.RawMessage) (any, error) { return gw.URL(), nil },
		wordAwait: word(g.await), wordBlast: word(g.blast), wordPace: word(g.pace),
		wordRedial: word(g.redial), wordHole: word(g.hole),
	})
	cancel()
	if gone := <-done; err == nil {
		err = gone
	}
	return err
}

// word decodes the argument of a function.
func word[A, R any](f func(A) (R, error)) line.Word {
	return func(raw json.RawMessage) (any, error) {
		var arg A
		if err := json.Unmarshal(raw, &arg); err != nil {
			return nil, err
		}
		return f(arg)
	}
}

func (g *gateway) app(i int) *dingtalktest.App { return g.gw.App(fmt.Sprintf("bench-%d", i)) }

// startFor bounds the time in which clients connect.
const startFor = 30 * time.Second

func (g *gateway) await(arg awaitArg) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	for i := range arg.Apps {
		if err := g.app(i).AwaitSessions(ctx, arg.Sockets); err != nil {
			return nil, fmt.Errorf("app %d: %w", i, err)
		}
	}
	return nil, nil
}

func (g *gateway) blast(cfg dingtalktest.BlastConfig) (dingtalktest.BlastResult, error) {
	return g.app(0).Blast(context.Background(), cfg)
}

// pace pushes messages at a steady rate, as a blast does, but tells in their texts
// to the nanosecond when each was pushed.
func (g *gateway) pace(arg paceArg) (n int, err error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		<-tick.C
		elapsed := time.Since(began)
		if elapsed >= arg.Duration {
			return n, nil
		}
		for ; n < int(elapsed.Seconds()*float64(arg.Rate)); n++ {
			_, err := g.app(0).Push(dingtalktest.Robot{
				ID:           message.ID(fmt.Sprintf("msgBlast0000_%010d_A==", n)),
				Conversation: message.ConversationID(fmt.Sprint("cidPace", n%arg.Conversations)),
				Text:         fmt.Sprintf("#%010d %s%d ", n, pushedMark, time.Now().UnixNano()),
			})
			if err != nil {
				return n, err
			}
		}
	}
}

// pushedMark stands before the time of a push.
const pushedMark = "pushed@"

// redial asks the client to leave its socket again and again while messages flow.
func (g *gateway) redial(arg redialArg) (res redialResult, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		res.Gaps = g.retireSockets(arg)
	}()
	res.Blast, err = g.app(0).Blast(context.Background(), dingtalktest.BlastConfig{
		Rate: arg.Rate, Conversations: 20, Window: 4096,
		Duration: time.Duration(arg.Times+1) * arg.Every,
	})
	<-done
	return res, err
}

func (g *gateway) retireSockets(arg redialArg) (gaps []time.Duration) {
	tick := time.NewTicker(arg.Every)
	defer tick.Stop()
	for range arg.Times {
		<-tick.C
		asked := g.newest(0)
		g.app(0).Disconnect()
		if gap, ok := g.firstFrame(asked, arg.Every); ok {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// newest is the id of the newest socket that was pushed at least so many frames.
func (g *gateway) newest(pushed int) (id int) {
	for _, s := range g.app(0).Sessions() {
		if info := s.Info(); info.Pushed >= pushed {
			id = max(id, info.ID)
		}
	}
	return id
}

// grain is how exactly the first frame on a socket is timed.
const grain = 500 * time.Microsecond

// firstFrame waits for a push on a socket newer than the given one.
func (g *gateway) firstFrame(than int, within time.Duration) (took time.Duration, ok bool) {
	began := time.Now()
	tick := time.NewTicker(grain)
	defer tick.Stop()
	for took < within {
		<-tick.C
		took = time.Since(began)
		if g.newest(1) > than {
			return took, true
		}
	}
	return took, false
}

// holeFor bounds the wait for a client that never notices.
const holeFor = 3 * time.Minute

func (g *gateway) hole(struct{}) (time.Duration, error) {
	began := time.Now()
	asked := g.newest(0)
	for _, s := range g.app(0).Sessions() {
		s.BlackHole(false)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < holeFor {
		<-tick.C
		if g.newest(0) > asked {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("no new socket within %v", holeFor)
}
