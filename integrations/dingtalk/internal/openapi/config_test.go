package openapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigDefaults(t *testing.T) {
	given := Config{ClientID: "id", ClientSecret: "secret"}
	s, err := New(given)
	require.NoError(t, err)
	require.Equal(t, "id", s.cfg.RobotCode)
	require.Equal(t, DefaultAPIBase, s.cfg.APIBase)
	require.Equal(t, DefaultOAPIBase, s.cfg.OAPIBase)
	require.Contains(t, s.cfg.ReplyHosts, "oapi.dingtalk.com")
	require.Contains(t, s.cfg.ReplyHosts, "api.dingtalk.com")
	require.Equal(t, DefaultTimeout, s.cfg.Timeout)
	require.Equal(t, DefaultMaxBody, s.cfg.MaxBody)
	require.NotSame(t, http.DefaultTransport, s.http.Transport)
	require.Equal(t, Config{ClientID: "id", ClientSecret: "secret"}, given, "a copy is filled")
}

func TestConfigListIsCopied(t *testing.T) {
	hosts := make([]string, 1, 8)
	hosts[0] = "Proxy.Example"
	s, err := New(Config{ClientID: "id", ClientSecret: "secret", ReplyHosts: hosts})
	require.NoError(t, err)
	require.Equal(t, "Proxy.Example", hosts[0])
	require.Equal(t, []string{"proxy.example", "api.dingtalk.com", "oapi.dingtalk.com"},
		s.cfg.ReplyHosts)
}

func TestConfigIsRefusedByField(t *testing.T) {
	for field, changes := range map[string][]func(*Config){
		"ClientID":     {func(c *Config) { c.ClientID = "" }},
		"ClientSecret": {func(c *Config) { c.ClientSecret = "" }},
		"Timeout":      {func(c *Config) { c.Timeout = -time.Second }},
		"MaxBody": {
			func(c *Config) { c.MaxBody = bodyMin - 1 }, func(c *Config) { c.MaxBody = bodyMax + 1 },
			func(c *Config) { c.MaxBody = -1 },
		},
		"ReplyHosts": {
			func(c *Config) { c.ReplyHosts = []string{"https://oapi.dingtalk.com"} },
			func(c *Config) { c.ReplyHosts = []string{""} },
		},
		"APIBase": {
			func(c *Config) { c.APIBase = "http://api.dingtalk.com" },
			func(c *Config) { c.APIBase, c.AllowInsecure = "http://api.dingtalk.com", true },
			func(c *Config) { c.APIBase = "http://127.0.0.1:1" },
			func(c *Config) { c.APIBase = "https://api.dingtalk.com/path" },
			func(c *Config) { c.APIBase = "api.dingtalk.com" },
		},
		"OAPIBase": {func(c *Config) { c.OAPIBase = "https://user@oapi.dingtalk.com" }},
	} {
		for i, change := range changes {
			t.Run(fmt.Sprint(field, i), func(t *testing.T) {
				cfg := Config{ClientID: "id", ClientSecret: "SENTINEL-A"}
				change(&cfg)
				s, err := New(cfg)
				require.Nil(t, s)
				require.ErrorIs(t, err, ErrConfig)
				require.ErrorContains(t, err, field)
				require.NotContains(t, err.Error(), "SENTINEL")
			})
		}
	}
}

func TestInsecureIsForLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1:8080", "localhost", "[::1]:99"} {
		_, err := New(Config{
			ClientID: "id", ClientSecret: "secret", APIBase: "http://" + host, AllowInsecure: true,
		})
		require.NoError(t, err, host)
	}
}
