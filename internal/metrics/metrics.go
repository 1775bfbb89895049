// Package metrics gathers the numbers of a running service for Prometheus. Parts
// of the service count for themselves and are read when somebody scrapes; only
// durations are observed as they happen.
package metrics

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Sample is one number at the time of a scrape. Names end in _total for counters.
type Sample struct {
	Name   string
	Help   string
	Labels []string // name, value, name, value, …
	Value  float64
}

// Set holds the metrics of one service. All methods may be called from any number
// of goroutines.
type Set struct {
	// immutable
	registry *prometheus.Registry
	ack      prometheus.Histogram
	wait     prometheus.Histogram
	handle   byResult
	send     byResult
}

// byResult has the histograms of what went well and of what did not.
type byResult struct{ ok, failed prometheus.Observer }

func (b byResult) observe(took time.Duration, err error) {
	if err != nil {
		b.failed.Observe(took.Seconds())
		return
	}
	b.ok.Observe(took.Seconds())
}

// New makes a set; read is asked for the samples at each scrape and may be called
// from several goroutines at once.
func New(read func() []Sample) *Set {
	fast := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	slow := []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	s := &Set{
		registry: prometheus.NewRegistry(),
		ack: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "penstock_ack_seconds", Buckets: fast,
			Help: "Time from a delivery's arrival to its acknowledgement.",
		}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "penstock_queue_wait_seconds", Buckets: slow,
			Help: "Time from a message's arrival to the start of its handler.",
		}),
	}
	s.handle = s.results("penstock_handler_seconds", "Time a handler took.", slow)
	s.send = s.results("penstock_send_seconds", "Time an attempt to send took.", slow)
	s.registry.MustRegister(s.ack, s.wait, sampler(read),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

func (s *Set) results(name, help string, buckets []float64) byResult {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
	}, []string{"result"})
	s.registry.MustRegister(v)
	return byResult{v.WithLabelValues("ok"), v.WithLabelValues("error")}
}

// Acked observes an acknowledgement.
func (s *Set) Acked(took time.Duration) { s.ack.Observe(took.Seconds()) }

// Handled observes a run of a handler.
func (s *Set) Handled(wait, took time.Duration, err error) {
	s.wait.Observe(wait.Seconds())
	s.handle.observe(took, err)
}

// SendTried observes an attempt to send.
func (s *Set) SendTried(took time.Duration, err error) {
	s.send.observe(took, err)
}

// Handler serves the metrics in the Prometheus text format.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// sampler turns samples into metrics. Its descriptions depend on what is read, so
// it describes nothing beforehand.
type sampler func() []Sample

// Describe implements prometheus.Collector.
func (sampler) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f sampler) Collect(ch chan<- prometheus.Metric) {
	for _, s := range f() {
		var names, values []string
		for pair := range slices.Chunk(s.Labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		kind := prometheus.GaugeValue
		if strings.HasSuffix(s.Name, "_total") {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(s.Name, s.Help, names, nil)
		if m, err := prometheus.NewConstMetric(desc, kind, s.Value, values...); err == nil {
			ch <- m
		}
	}
}
