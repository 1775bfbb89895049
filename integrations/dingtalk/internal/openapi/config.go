package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Defaults of a [Config].
const (
	DefaultAPIBase  = "https://api.dingtalk.com"
	DefaultOAPIBase = "https://oapi.dingtalk.com"
	DefaultTimeout  = 30 * time.Second
	DefaultMaxBody  = 14_000
)

// bodyMin keeps room for text beside a title, mentions and reopened fences;
// bodyMax is what DingTalk documents for msgParam.
const (
	bodyMin = 1_024
	bodyMax = 15_000
)

// ErrConfig is under every refusal of a configuration.
var ErrConfig = errors.New("dingtalk sender configuration")

// Config is what a [Sender] is made of. ClientID and ClientSecret are required;
// the zero value of everything else works.
type Config struct {
	// ClientID and ClientSecret are the app's credentials.
	ClientID     string
	ClientSecret string
	// RobotCode is used when a message did not bring one. Default: ClientID, which
	// is the robot code of an app's own robot.
	RobotCode string
	// APIBase and OAPIBase are where the two APIs live, without a path. Default:
	// DefaultAPIBase and DefaultOAPIBase.
	APIBase  string
	OAPIBase string
	// ReplyHosts are the hosts a webhook may name, as host or host:port, compared
	// exactly; the hosts of APIBase and OAPIBase are always among them. Default:
	// the hosts of DefaultAPIBase and DefaultOAPIBase.
	ReplyHosts []string
	// AllowInsecure lets http: URLs name loopback addresses. For tests and demos.
	AllowInsecure bool
	// HTTP carries proxy and certificates; its redirect policy, cookie jar and
	// timeout are not used. Default: a client on a transport of its own.
	HTTP *http.Client
	// Timeout bounds one Send over all its requests. Default: DefaultTimeout.
	Timeout time.Duration
	// MaxBody is the most bytes of an encoded webhook body and of an encoded
	// msgParam, from 1,024 to 15,000. Default: DefaultMaxBody.
	MaxBody int
	// Logger gets refused hosts and renewed tokens. Default: no log.
	Logger *slog.Logger
}

// String hides the secret.
func (c Config) String() string { return "[sender of " + c.ClientID + "]" }

// GoString hides the secret.
func (c Config) GoString() string { return c.String() }

// withDefaults fills a copy.
func (c Config) withDefaults() Config {
	c.RobotCode = cmp.Or(c.RobotCode, c.ClientID)
	c.APIBase = strings.TrimSuffix(cmp.Or(c.APIBase, DefaultAPIBase), "/")
	c.OAPIBase = strings.TrimSuffix(cmp.Or(c.OAPIBase, DefaultOAPIBase), "/")
	if len(c.ReplyHosts) == 0 {
		c.ReplyHosts = []string{hostOf(DefaultAPIBase), hostOf(DefaultOAPIBase)}
	}
	c.ReplyHosts = append(slices.Clone(c.ReplyHosts), hostOf(c.APIBase), hostOf(c.OAPIBase))
	for i, h := range c.ReplyHosts {
		c.ReplyHosts[i] = strings.ToLower(h)
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.HTTP.Transport = t.Clone()
		}
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate names the first field that cannot work.
func (c Config) validate() error {
	switch {
	case c.ClientID == "":
		return refuse("ClientID", "is empty")
	case c.ClientSecret == "":
		return refuse("ClientSecret", "is empty")
	case c.Timeout < 0:
		return refuse("Timeout", "is negative")
	case c.MaxBody < bodyMin || c.MaxBody > bodyMax:
		return refuse("MaxBody", fmt.Sprintf("must be from %d to %d", bodyMin, bodyMax))
	}
	if err := c.validateBase("APIBase", c.APIBase); err != nil {
		return err
	}
	if err := c.validateBase("OAPIBase", c.OAPIBase); err != nil {
		return err
	}
	for _, h := range c.ReplyHosts {
		if h == "" || strings.ContainsAny(h, "/@?# ") {
			return refuse("ReplyHosts", "must hold bare hosts, such as oapi.dingtalk.com")
		}
	}
	return nil
}

func (c Config) validateBase(field, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return refuse(field, "must be a scheme and a host, such as "+DefaultAPIBase)
	}
	if !c.secure(u) {
		return refuse(field, "must be https; http is for loopback hosts with AllowInsecure")
	}
	return nil
}

// secure tells whether secrets may travel to u.
func (c Config) secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && c.AllowInsecure && loopback(u.Hostname())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hostOf gives a URL's host as ReplyHosts has it, "" for what is no URL.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return listed(u)
}

// listed is u's host and port in lower case, without the port that https has
// anyway.
func listed(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	return host
}

func refuse(field, why string) error {
	return fmt.Errorf("%w: %s %s", ErrConfig, field, why)
}
