package config

import (
	"slices"
	"time"
)

// Config is a whole configuration. The tags of its fields, and of those below, say
// what a file may hold: yaml is the key, required demands a value, oneof lists the
// words that are allowed, min and max are bounds written as in a file.
type Config struct {
	// StopWithin bounds a stop from the signal to the exit.
	StopWithin    time.Duration  `yaml:"stop_within" min:"100ms" max:"1h"`
	Log           Log            `yaml:"log"`
	Admin         Admin          `yaml:"admin"`
	Store         Store          `yaml:"store"`
	Inbound       Inbound        `yaml:"inbound"`
	Outbound      Outbound       `yaml:"outbound"`
	Reconnect     Reconnect      `yaml:"reconnect"`
	Edge          Edge           `yaml:"edge"`
	Installations []Installation `yaml:"installations"`
	Routes        []Route        `yaml:"routes"`

	// Warnings are what the file may say and most likely does not mean, in its order.
	Warnings Problems
}

// Log configures the log, which goes to standard error.
type Log struct {
	Level  string `yaml:"level" oneof:"debug info warn error"`
	Format string `yaml:"format" oneof:"text json"`
}

// Admin configures the listener for health and metrics, and the socket for the
// operator's commands.
type Admin struct {
	// Listen is host:port, or "off".
	Listen string `yaml:"listen"`
	// Token is required of requests when the listener is not on loopback.
	Token Secret `yaml:"token"`
	// Socket is the path of the socket for the operator's commands, or "off". Empty
	// is beside the file of the store, and none for a store in memory.
	Socket string `yaml:"socket"`
}

// Store chooses where messages are kept.
type Store struct {
	Kind string `yaml:"kind" oneof:"sqlite memory"`
	// Path is the file of a sqlite store.
	Path string `yaml:"path"`
	// MaxFile bounds that file; 0 means as large as the disk allows.
	MaxFile Size `yaml:"max_file" min:"0B"`
	// DeadFor is how long a sqlite store keeps a dead letter.
	DeadFor time.Duration `yaml:"dead_for" min:"1m"`
	// HistoryFor is how long it knows what became of a message.
	HistoryFor time.Duration `yaml:"history_for" min:"1m"`
	// MaxItems and MaxBytes bound a memory store.
	MaxItems int  `yaml:"max_items" min:"1"`
	MaxBytes Size `yaml:"max_bytes" min:"1MiB"`
	// DedupWindow is how long a message id is remembered.
	DedupWindow time.Duration `yaml:"dedup_window" min:"1s"`
	// DedupIDs is how many are remembered in memory.
	DedupIDs int `yaml:"dedup_ids" min:"1"`
}

// Inbound configures handling.
type Inbound struct {
	// Workers is 0 for a number that suits the routes: see [Config.InboundWorkers].
	Workers         int           `yaml:"workers" min:"0"`
	PerConversation int           `yaml:"per_conversation" min:"1"`
	Pending         int           `yaml:"pending" min:"1"`
	Timeout         time.Duration `yaml:"timeout" min:"1ms"`
	Attempts        int           `yaml:"attempts" min:"1"`
	RetryBase       time.Duration `yaml:"retry_base" min:"1ms"`
	RetryMax        time.Duration `yaml:"retry_max" min:"1ms"`
	NoRoute         string        `yaml:"no_route" oneof:"done dead"`
	SyncWorkers     int           `yaml:"sync_workers" min:"1"`
	// SyncWithin ends before the platform gives up, after 2 s.
	SyncWithin time.Duration `yaml:"sync_within" min:"1ms" max:"2s"`
}

// Outbound configures sending.
type Outbound struct {
	Workers         int             `yaml:"workers" min:"1"`
	PerConversation int             `yaml:"per_conversation" min:"1"`
	Pending         int             `yaml:"pending" min:"1"`
	Timeout         time.Duration   `yaml:"timeout" min:"1ms"`
	Attempts        int             `yaml:"attempts" min:"1"`
	Waits           []time.Duration `yaml:"waits" min:"0s"`
	TTL             time.Duration   `yaml:"ttl" min:"1s"`
	Uncertain       string          `yaml:"uncertain" oneof:"resend discard"`
	// InstallationRate and ConversationRate are sends a second; 0 is no limit.
	InstallationRate float64 `yaml:"installation_rate" min:"0" max:"1000000"`
	ConversationRate float64 `yaml:"conversation_rate" min:"0" max:"1000000"`
}

// Reconnect configures when a lost session is opened again.
type Reconnect struct {
	Base       time.Duration `yaml:"base" min:"1ms"`
	Max        time.Duration `yaml:"max" min:"1ms"`
	ProbeEvery time.Duration `yaml:"probe_every" min:"1s"`
	// MaxAge is when a session is replaced unasked; 0 is never.
	MaxAge    time.Duration `yaml:"max_age" min:"0s"`
	PerSecond float64       `yaml:"per_second" min:"0.01" max:"1000000"`
}

// Edge configures the gateway for consumers. Without consumers there is none.
type Edge struct {
	// Listen is host:port.
	Listen string `yaml:"listen"`
	// PublicURL is how consumers reach it; empty is http or https on Listen.
	PublicURL string `yaml:"public_url"`
	// TLSCert and TLSKey are files in PEM form.
	TLSCert        string        `yaml:"tls_cert"`
	TLSKey         string        `yaml:"tls_key"`
	MaxConnections int           `yaml:"max_connections" min:"1"`
	MaxFrame       Size          `yaml:"max_frame" min:"4KiB" max:"64MiB"`
	AckWithin      time.Duration `yaml:"ack_within" min:"1ms" max:"24h"`
	PingEvery      time.Duration `yaml:"ping_every" min:"10ms" max:"1h"`
	WriteTimeout   time.Duration `yaml:"write_timeout" min:"1ms" max:"1h"`
	AwayWithin     time.Duration `yaml:"away_within" min:"1s" max:"24h"`
	// PassthroughWebhook leaves the platform's reply address in messages.
	PassthroughWebhook bool       `yaml:"passthrough_webhook"`
	Consumers          []Consumer `yaml:"consumers"`
}

// Consumer is one bot that may connect to the edge.
type Consumer struct {
	Name           string `yaml:"name" required:"true"`
	ClientID       string `yaml:"client_id" required:"true"`
	ClientSecret   Secret `yaml:"client_secret" required:"true"`
	MaxConnections int    `yaml:"max_connections" min:"1"`
	// MaxInFlight bounds the unanswered messages of a connection; 0 does not.
	MaxInFlight int `yaml:"max_in_flight" min:"0"`
}

// Installation is one bot's credentials on one platform.
type Installation struct {
	ID           string `yaml:"id" required:"true"`
	Platform     string `yaml:"platform" oneof:"dingtalk"`
	ClientID     string `yaml:"client_id" required:"true"`
	ClientSecret Secret `yaml:"client_secret" required:"true"`
	// RobotCode sends replies; empty is ClientID.
	RobotCode  string   `yaml:"robot_code"`
	Topics     []string `yaml:"topics" oneof:"/v1.0/im/bot/messages/get /v1.0/im/bot/messages/delegate /v1.0/card/instances/callback /v1.0/card/dynamicData/get /v1.0/graph/api/invoke"` //nolint:lll // a tag cannot be broken
	APIBase    string   `yaml:"api_base"`
	OAPIBase   string   `yaml:"oapi_base"`
	AllowInsec bool     `yaml:"allow_insecure"`
	Proxy      Secret   `yaml:"proxy"`
	CAFile     string   `yaml:"ca_file"`
	ReplyHosts []string `yaml:"reply_hosts"`

	PingEvery time.Duration `yaml:"ping_every" min:"1ms" max:"1h"`
	Silence   time.Duration `yaml:"silence" min:"1ms" max:"24h"`
	// AppSilence is 0 for never.
	AppSilence time.Duration `yaml:"app_silence" min:"0s" max:"24h"`
	ReadLimit  Size          `yaml:"read_limit" min:"4KiB" max:"1GiB"`
}

// Route sends the messages that match to one handler.
type Route struct {
	// Name is "route-N", counted from 1, if the file has none.
	Name    string  `yaml:"name"`
	Match   Match   `yaml:"match"`
	Handler Handler `yaml:"handler"`
	// Timeout is 0 for that of the inbound queue alone.
	Timeout time.Duration `yaml:"timeout" min:"0s"`
}

// Match is what a message must have; what is empty matches everything.
type Match struct {
	Installations []string `yaml:"installations"`
	Platforms     []string `yaml:"platforms" oneof:"dingtalk"`
	Kinds         []string `yaml:"kinds" oneof:"message delegate card query plugin event"`
	Chats         []string `yaml:"chats" oneof:"direct group none"`
	Mention       *bool    `yaml:"mention"`
	Prefix        string   `yaml:"prefix"`
	Pattern       Pattern  `yaml:"pattern"`
}

// Handler is exactly one of its fields.
type Handler struct {
	Echo *Echo       `yaml:"echo"`
	HTTP *HTTP       `yaml:"http"`
	Exec *Exec       `yaml:"exec"`
	Edge *ToConsumer `yaml:"edge"`
}

// ToConsumer gives the message to a consumer of the edge.
type ToConsumer struct {
	Consumer string `yaml:"consumer" required:"true"`
}

// Echo answers with the message's own text.
type Echo struct{}

// HTTP posts the message to an endpoint.
type HTTP struct {
	// URL may hold a password or a token.
	URL         Secret            `yaml:"url" required:"true"`
	Secret      Secret            `yaml:"secret"`
	OldSecrets  []Secret          `yaml:"old_secrets"`
	Headers     map[string]Secret `yaml:"headers"`
	Timeout     time.Duration     `yaml:"timeout" min:"1ms"`
	MaxResponse Size              `yaml:"max_response" min:"1B" max:"64MiB"`
}

// Exec runs a command for each message.
type Exec struct {
	Command   []string          `yaml:"command" required:"true"`
	Dir       string            `yaml:"dir"`
	Env       map[string]Secret `yaml:"env"`
	Timeout   time.Duration     `yaml:"timeout" min:"1ms"`
	MaxOutput Size              `yaml:"max_output" min:"1B" max:"64MiB"`
	// Output says how the standard output is read.
	Output string `yaml:"output" oneof:"auto text json"`
}

// Default is the configuration that an empty file gives.
func Default() Config {
	return Config{
		StopWithin: 15 * time.Second,
		Log:        Log{Level: "info", Format: "text"},
		Admin:      Admin{Listen: "127.0.0.1:8970"},
		Store: Store{
			Kind: "sqlite", Path: "penstock.db", DeadFor: 30 * 24 * time.Hour,
			HistoryFor: 24 * time.Hour, MaxItems: 100_000, MaxBytes: 256 << 20,
			DedupWindow: 24 * time.Hour, DedupIDs: 200_000,
		},
		Inbound: Inbound{
			PerConversation: 256, Pending: 2048, Timeout: 120 * time.Second,
			Attempts: 8, RetryBase: time.Second, RetryMax: 5 * time.Minute,
			NoRoute: "done", SyncWorkers: 64, SyncWithin: 1800 * time.Millisecond,
		},
		Outbound: Outbound{
			Workers: 512, PerConversation: 64, Pending: 16384, Timeout: 30 * time.Second,
			Attempts: 5, TTL: 24 * time.Hour, Uncertain: "resend", InstallationRate: 20,
			Waits: []time.Duration{
				5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute,
			},
		},
		Reconnect: Reconnect{
			Base: time.Second, Max: time.Minute, ProbeEvery: 5 * time.Minute, PerSecond: 50,
		},
		Edge: Edge{
			Listen: "127.0.0.1:8975", MaxConnections: 1024, MaxFrame: 1 << 20,
			AckWithin: time.Minute, PingEvery: 25 * time.Second, WriteTimeout: 10 * time.Second,
			AwayWithin: 15 * time.Minute,
		},
	}
}

func defaultInstallation() Installation {
	return Installation{
		Platform: "dingtalk",
		Topics:   []string{"/v1.0/im/bot/messages/get"},
		APIBase:  "https://api.dingtalk.com", OAPIBase: "https://oapi.dingtalk.com",
		PingEvery: 30 * time.Second, Silence: 85 * time.Second, ReadLimit: 4 << 20,
	}
}

func defaultConsumer() Consumer { return Consumer{MaxConnections: 16} }

func defaultHTTP() HTTP { return HTTP{Timeout: 60 * time.Second, MaxResponse: 1 << 20} }

func defaultExec() Exec {
	return Exec{Timeout: 60 * time.Second, MaxOutput: 1 << 20, Output: "auto"}
}

// Workers of a bot that has none configured. A message at the edge only waits for its
// consumer; any other handler may be a process or a connection each.
const (
	workers     = 8
	edgeWorkers = 256
)

// InboundWorkers is how many handlers run at once for each bot.
func (c *Config) InboundWorkers() int {
	if c.Inbound.Workers > 0 {
		return c.Inbound.Workers
	}
	elsewhere := func(r Route) bool { return r.Handler.Edge == nil }
	if len(c.Routes) == 0 || slices.ContainsFunc(c.Routes, elsewhere) {
		return workers
	}
	return edgeWorkers
}
