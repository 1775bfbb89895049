package integrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

func TestConfigNamesTheField(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*integrations.Config){
		"Connector is not set":   func(c *integrations.Config) { c.Connector = nil },
		"Sink is not set":        func(c *integrations.Config) { c.Sink = nil },
		"RedialBase is -1ns":     func(c *integrations.Config) { c.RedialBase = -1 },
		"RedialMax is -1ns":      func(c *integrations.Config) { c.RedialMax = -1 },
		"MinLife is -1ns":        func(c *integrations.Config) { c.MinLife = -1 },
		"ProbeEvery is -1ns":     func(c *integrations.Config) { c.ProbeEvery = -1 },
		"RetireGrace is -1ns":    func(c *integrations.Config) { c.RetireGrace = -1 },
		"MaxAge is -1ns":         func(c *integrations.Config) { c.MaxAge = -1 },
		"RedialMax is 1s":        func(c *integrations.Config) { c.RedialBase, c.RedialMax = 2e9, 1e9 },
		"MaxAge is 59s":          func(c *integrations.Config) { c.MaxAge = 59 * time.Second },
		"MinLife (2m0s) or more": func(c *integrations.Config) { c.MinLife, c.MaxAge = 12e10, 18e10 },
	}
	for want, change := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cfg := integrations.Config{
				Connector: still{},
				Sink:      func(context.Context, message.Delivery) error { return nil },
			}
			_, err := integrations.NewSupervisor(cfg)
			require.NoError(t, err)
			change(&cfg)
			_, err = integrations.NewSupervisor(cfg)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestPacerConfigNamesTheField(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]integrations.PacerConfig{
		"Rate is -1":       {Rate: -1},
		"Burst is -1":      {Burst: -1},
		"InFlight is -1":   {InFlight: -1},
		"Hold is -1ns":     {Hold: -1},
		"UrgentRate is 40": {UrgentRate: 40},
	} {
		_, err := integrations.NewPacer(cfg)
		require.ErrorContains(t, err, want)
	}
}
