package app

import (
	"time"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/internal/metrics"
	"github.com/penstock-io/penstock/relay"
)

// samples reads every part's counts for a scrape.
func (a *App) samples() []metrics.Sample {
	var s sampleList
	s.relay(a.relay.Stats())
	s.writer(a.relay)
	s.edge(a.edge.Stats())
	for _, i := range a.all() {
		s.installation(i)
	}
	return s
}

func (s *sampleList) edge(e edge.Stats) {
	for consumer, n := range e.Connections {
		s.add("edge_connections", "Open connections of a consumer.", float64(n), "consumer", consumer)
	}
	s.add("edge_pushes_total", "Frames that carried a message to a consumer.", float64(e.Pushes))
	s.add("edge_stalls_total", "Times that a consumer's connection was found not to read.",
		float64(e.Stalls))
	s.add("edge_frames_resent_total", "Frames that an operator had sent again.",
		float64(e.Frames.Resent))
	s.add("edge_frames_evicted_total", "Unanswered frames that were not kept, as there were too many.",
		float64(e.Frames.Evicted))
	s.add("edge_frame_seconds_total", "Time from a frame to the end of its write, all frames together.",
		e.Frames.Wait.Seconds())
	s.add("edge_frame_queued_seconds_total", "Time until a frame's write began, all frames together.",
		e.Frames.Queued.Seconds())
	for _, c := range []struct {
		name, help, label string
		counts            map[string]int64
	}{
		{"edge_opens_total", "Requests for a ticket, by result.", "result", e.Opens},
		{"edge_dials_total", "Connections of consumers, by result.", "result", e.Dials},
		{"edge_closed_total", "Connections of consumers that ended, by reason.", "reason", e.Closed},
		{"edge_outcomes_total", "Messages given to consumers, by what came of it.", "outcome", e.Outcomes},
		{"edge_strays_total", "What consumers said that nobody waited for, by kind.", "kind", e.Strays},
		{"edge_replies_total", "Replies that consumers posted, by result.", "result", e.Replies},
		{"edge_frames_total", "Frames that were written, by lane.", "lane", e.Frames.Sent},
		{"edge_frame_bytes_total", "Bytes of frames that were written, by lane.", "lane", e.Frames.Bytes},
		{"edge_frames_dropped_total", "Frames that were not written, by reason.", "reason", e.Frames.Dropped},
	} {
		for word, n := range c.counts {
			s.add(c.name, c.help, float64(n), c.label, word)
		}
	}
}

type sampleList []metrics.Sample

func (s *sampleList) add(name, help string, v float64, labels ...string) {
	*s = append(*s, metrics.Sample{Name: "penstock_" + name, Help: help, Value: v, Labels: labels})
}

func (s *sampleList) reasons(name, help string, m map[string]int64) {
	for reason, n := range m {
		s.add(name, help, float64(n), "reason", reason)
	}
}

func (s *sampleList) relay(r relay.Stats) {
	s.add("deliveries_total", "Deliveries that sessions offered.", float64(r.Offered))
	s.add("messages_accepted_total", "Messages stored for the first time.", float64(r.Accepted))
	s.add("duplicates_total", "Deliveries whose message was known.", float64(r.Duplicates))
	s.reasons("refused_total", "Deliveries that were not acknowledged, by reason.", r.Refused)
	s.add("messages_done_total", "Messages handled.", float64(r.Done))
	s.reasons("messages_dead_total", "Messages that became dead letters, by reason.", r.Dead)
	s.add("handler_retries_total", "Handler attempts to be repeated.", float64(r.Retries))
	s.add("messages_requeued_total", "Dead messages given another chance.", float64(r.Requeued))
	s.add("messages_purged_total", "Messages removed before they were handled.", float64(r.Purged))
	s.add("dead_messages_purged_total", "Dead messages removed.", float64(r.PurgedDead))
	s.add("handler_unreached_total", "Tries that found nobody to handle the message.",
		float64(r.Unreached))
	s.add("unrouted_total", "Messages that no route took.", float64(r.NoRoute))
	s.add("late_answers_total", "Synchronous answers that came too late.", float64(r.LateAnswer))
	s.add("replies_total", "Replies put into the outbox, parts counted singly.", float64(r.Replies))
	s.add("replies_sent_total", "Replies that a platform took.", float64(r.Sent))
	s.add("send_retries_total", "Attempts to send to be repeated.", float64(r.Resends))
	s.add("send_uncertain_total", "Sends that may have landed without an answer.", float64(r.Uncertain))
	s.reasons("replies_dead_total", "Replies that became dead letters, by reason.", r.Discarded)
	s.add("replies_requeued_total", "Dead replies given another chance.", float64(r.RequeuedReplies))
	s.add("replies_purged_total", "Replies removed before they were sent.", float64(r.PurgedReplies))
	s.add("dead_replies_purged_total", "Dead replies removed.", float64(r.PurgedDeadReplies))
	s.add("waiting_in_store", "Items that wait in the store for room in a queue.", float64(r.Spilled))
}

func (s *sampleList) writer(r *relay.Relay) {
	w := r.WriterStats()
	s.add("store_commits_total", "Groups committed.", float64(w.Commits))
	s.add("store_commit_failures_total", "Groups that failed.", float64(w.Failed))
	s.add("store_ops_total", "Changes committed.", float64(w.Ops))
	s.add("store_longest_commit_seconds", "Longest commit so far.", w.LongestCommit.Seconds())
	s.add("store_writer_waiting", "Changes that wait for a commit.", float64(w.Waiting))
}

func (s *sampleList) installation(i *installation) {
	id := string(i.id)
	st := i.sup.Status()
	h := i.health()
	s.add("installation_ready", "1 if the installation receives and sends.", bit(h.Ready),
		"installation", id)
	s.add("installation_state", "1 for the state that the installation is in.", 1,
		"installation", id, "state", h.State)
	s.add("sessions", "Open sessions.", float64(st.Live), "installation", id)
	s.add("sessions_opened_total", "Sessions that were started.", float64(st.Opened),
		"installation", id)
	for why, n := range st.Ends {
		s.add("sessions_ended_total", "Sessions that ended, by why.", float64(n),
			"installation", id, "why", integrations.Why(why).String())
	}
	s.queue(i, id)
	i.app.mu.Lock()
	c, ok := i.driver.Connector.(*dingtalk.Connector)
	i.app.mu.Unlock()
	if ok {
		s.dingtalk(c.Stats(), id)
	}
}

func (s *sampleList) queue(i *installation, id string) {
	q := i.lane.Queue()
	for state, n := range map[string]int{
		"queued": q.Queued, "running": q.Running, "held": q.Held, "detached": q.Detached, "stuck": q.Stuck,
	} {
		s.add("queue", "Messages in the installation's queue, by state.", float64(n),
			"installation", id, "state", state)
	}
}

func (s *sampleList) dingtalk(d dingtalk.Stats, id string) {
	for kind, n := range map[string]uint64{
		"system": d.Systems, "callback": d.Callbacks, "event": d.Events, "unknown": d.Unknown,
	} {
		s.add("frames_total", "Frames read, by type.", float64(n), "installation", id, "type", kind)
	}
	for reason, n := range map[string]uint64{
		"not_a_frame": d.BadFrames, "no_message_id": d.NoMessageID, "unhandled_topic": d.Unhandled,
		"defect": d.Defects, "bad_answer": d.BadAnswers,
	} {
		s.add("odd_frames_total", "Frames that were not as they should be, by reason.", float64(n),
			"installation", id, "reason", reason)
	}
	for reason, n := range map[string]uint64{
		"stopping": d.DroppedStopping, "closed": d.DroppedClosed, "ack_late": d.AcksLate,
		"ack_lost": d.AcksLost, "pong": d.PongsDropped,
	} {
		s.add("dropped_total", "What a session did not deliver or write, by reason.", float64(n),
			"installation", id, "reason", reason)
	}
	s.add("acks_total", "Acknowledgements written.", float64(d.Acks), "installation", id)
	s.add("last_frame_age_seconds", "Time since a frame was read, -1 if never.", age(d.LastFrame),
		"installation", id)
	s.add("last_callback_age_seconds", "Time since a callback was read, -1 if never.",
		age(d.LastCallback), "installation", id)
}

func age(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return time.Since(t).Seconds()
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
