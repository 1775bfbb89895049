package dingtalk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
)

func TestCredentialsAreEnough(t *testing.T) {
	c, err := dingtalk.New(dingtalk.Config{ClientID: "id", ClientSecret: "s"})
	require.NoError(t, err)
	p := c.Profile()
	require.EqualValues(t, "dingtalk", p.Platform)
	require.Equal(t, integrations.AckEach, p.Ack)
	require.False(t, p.SendNeedsSession)
	require.Zero(t, c.Stats())
}

func TestBadConfigNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*dingtalk.Config){
		"ClientID":     func(c *dingtalk.Config) { c.ClientID = "" },
		"ClientSecret": func(c *dingtalk.Config) { c.ClientSecret = "" },
		"APIBase":      func(c *dingtalk.Config) { c.APIBase = "http://api.example.test" },
		"OAPIBase":     func(c *dingtalk.Config) { c.OAPIBase = "ftp://oapi.example.test" },
		"Proxy":        func(c *dingtalk.Config) { c.Proxy = "gopher://user:pw@proxy" },
		"Topics[1]":    func(c *dingtalk.Config) { c.Topics = []string{topicRobot, "/other"} },
		"PingEvery":    func(c *dingtalk.Config) { c.PingEvery = -1 },
		"Silence":      func(c *dingtalk.Config) { c.Silence = 30 * time.Second },
		"AppSilence":   func(c *dingtalk.Config) { c.AppSilence = -1 },
		"ReadLimit":    func(c *dingtalk.Config) { c.ReadLimit = 10 },
		"OpenTimeout":  func(c *dingtalk.Config) { c.OpenTimeout = 2 * time.Minute },
		"DialTimeout":  func(c *dingtalk.Config) { c.DialTimeout = 2 * time.Minute },
		"WriteTimeout": func(c *dingtalk.Config) { c.WriteTimeout = -1 },
		"AckGrace":     func(c *dingtalk.Config) { c.AckGrace = time.Hour },
	} {
		t.Run(field, func(t *testing.T) {
			cfg := dingtalk.Config{ClientID: "id", ClientSecret: "s"}
			change(&cfg)
			_, err := dingtalk.New(cfg)
			require.ErrorContains(t, err, field+":")
			require.NotContains(t, fmt.Sprint(err), "pw")
		})
	}
}

func TestInsecureIsForLoopbackOnly(t *testing.T) {
	cfg := dingtalk.Config{ClientID: "id", ClientSecret: "s", AllowInsecure: true}
	for base, good := range map[string]bool{
		"http://127.0.0.1:80":       true,
		"http://[::1]":              true,
		"http://localhost:1":        true,
		"http://localhost.evil.com": false,
		"http://192.0.2.1":          false,
		"http://user@127.0.0.1":     false,
	} {
		cfg.APIBase = base
		_, err := dingtalk.New(cfg)
		require.Equal(t, good, err == nil, base)
	}
}
