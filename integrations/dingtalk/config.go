package dingtalk

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

// Hosts of DingTalk's public cloud.
const (
	DefaultAPIBase  = "https://api.dingtalk.com"
	DefaultOAPIBase = "https://oapi.dingtalk.com"
)

// ProxyNone as Config.Proxy dials directly whatever the environment says.
const ProxyNone = "none"

// Config describes one bot. Only ClientID and ClientSecret are needed; for every
// duration, 0 means the default.
type Config struct {
	// Installation names the bot inside this process. Default: ClientID.
	Installation message.InstallationID
	// ClientID and ClientSecret are the application's credentials.
	ClientID, ClientSecret string

	// APIBase is the host of the open API. Default DefaultAPIBase.
	APIBase string
	// OAPIBase is the host of the older API. Default DefaultOAPIBase.
	OAPIBase string
	// AllowInsecure permits http and ws, on loopback hosts only.
	AllowInsecure bool
	// Proxy is the http or socks5 URL of a proxy for both the open request and
	// the socket. Empty: as the environment says; ProxyNone: no proxy.
	Proxy string
	// CAFile holds PEM certificates that are trusted besides the system's.
	CAFile string
	// RootCAs replaces the system's certificates; CAFile is added to it.
	RootCAs *x509.CertPool
	// DialContext opens connections, to the proxy if there is one. Default: the
	// net package's.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// Topics lists the callback topics to subscribe to. Default: messages to the
	// robot.
	Topics []string
	// NoEvents leaves out the subscription to platform events.
	NoEvents bool
	// UserAgent is what the gateway is told about us. Default "penstock-go/1".
	UserAgent string

	// PingEvery is the period of our own pings. Default 30 s.
	PingEvery time.Duration
	// Silence ends a session on which neither frame nor pong was read for so
	// long. It must exceed PingEvery. Default 85 s: with the wait before the redial a
	// dead link is replaced within 90 s.
	Silence time.Duration
	// AppSilence ends a session on which no frame of the application, pings of the
	// gateway included, was read for so long. 0 means never.
	AppSilence time.Duration
	// ReadLimit bounds one message in bytes. Default 4 MiB.
	ReadLimit int64
	// OpenTimeout bounds the open request, DialTimeout the dial with all its
	// handshakes. Default 10 s each.
	OpenTimeout, DialTimeout time.Duration
	// WriteTimeout bounds one write. Default 10 s.
	WriteTimeout time.Duration
	// AckGrace is how long a session that is told to stop waits for the
	// acknowledgements it owes. Default 3 s.
	AckGrace time.Duration

	// ReplyHosts lists the hosts to which replies may be posted; those of APIBase
	// and OAPIBase are always among them. Default: DingTalk's public cloud.
	ReplyHosts []string
	// RobotCode is the sender of replies that name no robot. Default: ClientID.
	RobotCode string

	// Logger takes the connector's log; what tells installations apart belongs into
	// its attributes. Default: none.
	Logger *slog.Logger
}

// knownTopics are the callbacks that payload can read.
var knownTopics = []string{
	payload.TopicRobot, payload.TopicDelegate, payload.TopicCard,
	payload.TopicDynamic, payload.TopicPlugin,
}

// maxTimeout keeps a dial well inside the 90 s for which a ticket is good.
const maxTimeout = time.Minute

// minReadLimit keeps a typing error from cutting every session at its first
// message.
const minReadLimit = 4 << 10

func (c Config) withDefaults() Config {
	orString(&c.APIBase, DefaultAPIBase)
	orString(&c.OAPIBase, DefaultOAPIBase)
	orString(&c.UserAgent, "penstock-go/1")
	orString(&c.RobotCode, c.ClientID)
	if c.Installation == "" {
		c.Installation = message.InstallationID(c.ClientID)
	}
	orDuration(&c.PingEvery, 30*time.Second)
	orDuration(&c.Silence, 85*time.Second)
	orDuration(&c.OpenTimeout, 10*time.Second)
	orDuration(&c.DialTimeout, 10*time.Second)
	orDuration(&c.WriteTimeout, 10*time.Second)
	orDuration(&c.AckGrace, 3*time.Second)
	if c.ReadLimit == 0 {
		c.ReadLimit = 4 << 20
	}
	if c.Topics = slices.Clone(c.Topics); len(c.Topics) == 0 {
		c.Topics = []string{payload.TopicRobot}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.DialContext == nil {
		c.DialContext = (&net.Dialer{}).DialContext
	}
	return c
}

func orString(v *string, def string) {
	if *v == "" {
		*v = def
	}
}

func orDuration(v *time.Duration, def time.Duration) {
	if *v == 0 {
		*v = def
	}
}

// validate reports every problem, each with the name of its field.
func (c *Config) validate() error {
	var errs []error
	add := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf(field+": "+format, args...))
	}
	if c.ClientID == "" {
		add("ClientID", "is empty")
	}
	if c.ClientSecret == "" {
		add("ClientSecret", "is empty")
	}
	c.validateHosts(add)
	c.validateTimes(add)
	if c.ReadLimit < minReadLimit {
		add("ReadLimit", "%d is below %d", c.ReadLimit, minReadLimit)
	}
	for i, t := range c.Topics {
		if !slices.Contains(knownTopics, t) {
			add(fmt.Sprintf("Topics[%d]", i), "unknown callback topic %q", t)
		}
	}
	return errors.Join(errs...)
}

type addProblem func(field, format string, args ...any)

func (c *Config) validateHosts(add addProblem) {
	if why := c.badBase(c.APIBase); why != "" {
		add("APIBase", "%s", why)
	}
	if why := c.badBase(c.OAPIBase); why != "" {
		add("OAPIBase", "%s", why)
	}
	// The URL may hold a password, so the problem is told without it.
	if p, err := url.Parse(c.Proxy); c.Proxy != "" && c.Proxy != ProxyNone &&
		(err != nil || p.Host == "" || (p.Scheme != "http" && p.Scheme != "socks5")) {
		add("Proxy", "is not an http or socks5 URL")
	}
}

func (c *Config) badBase(base string) string {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return "must be a scheme and a host, such as " + DefaultAPIBase
	case u.Scheme == "https":
		return ""
	case u.Scheme == "http" && c.AllowInsecure && isLoopback(u.Hostname()):
		return ""
	case u.Scheme == "http":
		return "must be https; http needs AllowInsecure and a loopback host"
	default:
		return fmt.Sprintf("scheme %q is not https", u.Scheme)
	}
}

func (c *Config) validateTimes(add addProblem) {
	for _, d := range []struct {
		field string
		value time.Duration
		limit time.Duration
	}{
		{"PingEvery", c.PingEvery, time.Hour},
		{"Silence", c.Silence, 24 * time.Hour},
		{"AppSilence", c.AppSilence, 24 * time.Hour},
		{"OpenTimeout", c.OpenTimeout, maxTimeout},
		{"DialTimeout", c.DialTimeout, maxTimeout},
		{"WriteTimeout", c.WriteTimeout, maxTimeout},
		{"AckGrace", c.AckGrace, maxTimeout},
	} {
		if d.value < 0 || d.value > d.limit {
			add(d.field, "%v is not between 0 and %v", d.value, d.limit)
		}
	}
	if c.Silence <= c.PingEvery {
		add("Silence", "%v must exceed PingEvery %v", c.Silence, c.PingEvery)
	}
}
