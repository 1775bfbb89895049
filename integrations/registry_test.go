package integrations_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// still is a connector that waits for its context.
type still struct{}

func (still) Profile() integrations.Profile { return integrations.Profile{Platform: "still"} }

func (still) Run(ctx context.Context, _ integrations.Cursor, _ integrations.Intake) integrations.End {
	<-ctx.Done()
	return integrations.End{Why: integrations.Stopped}
}

func makeStill(message.InstallationID, any) (integrations.Driver, error) {
	return integrations.Driver{Connector: still{}}, nil
}

func TestRegistryOpens(t *testing.T) {
	t.Parallel()
	var r integrations.Registry
	var gotInst message.InstallationID
	var gotSettings any
	f := func(inst message.InstallationID, settings any) (integrations.Driver, error) {
		gotInst, gotSettings = inst, settings
		return makeStill(inst, settings)
	}
	require.NoError(t, r.Register("slack", makeStill))
	require.NoError(t, r.Register("dingtalk", f))
	require.Equal(t, []message.Platform{"dingtalk", "slack"}, r.Platforms())

	d, err := r.Open("dingtalk", "support", 42)
	require.NoError(t, err)
	require.Equal(t, integrations.Driver{Connector: still{}}, d)
	require.Equal(t, message.InstallationID("support"), gotInst)
	require.Equal(t, 42, gotSettings)
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	var r integrations.Registry
	require.NoError(t, r.Register("dingtalk", makeStill))
	require.ErrorIs(t, r.Register("dingtalk", makeStill), integrations.ErrTaken)
	require.ErrorIs(t, r.Register("slack", nil), integrations.ErrFactory)
	require.ErrorIs(t, r.Register("", makeStill), integrations.ErrFactory)
	require.Equal(t, []message.Platform{"dingtalk"}, r.Platforms())
}

func TestOpenUnknownPlatform(t *testing.T) {
	t.Parallel()
	var empty, r integrations.Registry
	for _, p := range []message.Platform{"dingtalk", "feishu", "slack"} {
		require.NoError(t, r.Register(p, makeStill))
	}
	tests := []struct {
		registry *integrations.Registry
		name     message.Platform
		nearest  message.Platform
		text     string
	}{
		{&r, "dingtlak", "dingtalk", `unknown platform "dingtlak", did you mean "dingtalk"?` +
			" (known: dingtalk, feishu, slack)"},
		{&r, "Slack", "slack", `unknown platform "Slack", did you mean "slack"?` +
			" (known: dingtalk, feishu, slack)"},
		{&r, "telegram", "", `unknown platform "telegram" (known: dingtalk, feishu, slack)`},
		{&r, "", "", `unknown platform "" (known: dingtalk, feishu, slack)`},
		{&empty, "slack", "", `unknown platform "slack" (none is registered)`},
	}
	for _, tt := range tests {
		t.Run(string(tt.name), func(t *testing.T) {
			t.Parallel()
			_, err := tt.registry.Open(tt.name, "i", nil)
			var unknown *integrations.UnknownError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, tt.nearest, unknown.Nearest)
			require.EqualError(t, err, tt.text)
		})
	}
}

func TestOpenNamesTheInstallation(t *testing.T) {
	t.Parallel()
	var r integrations.Registry
	broken := errors.New("client id is missing")
	factories := map[message.Platform]integrations.Factory{
		"failing": func(message.InstallationID, any) (integrations.Driver, error) {
			return integrations.Driver{}, broken
		},
		"panicking": func(message.InstallationID, any) (integrations.Driver, error) {
			panic("hunter2")
		},
		"half": func(message.InstallationID, any) (integrations.Driver, error) {
			return integrations.Driver{}, nil
		},
	}
	for p, f := range factories {
		require.NoError(t, r.Register(p, f))
	}
	for p, want := range map[message.Platform]error{
		"failing": broken, "panicking": integrations.ErrFactory, "half": integrations.ErrFactory,
	} {
		_, err := r.Open(p, "support", nil)
		require.ErrorIs(t, err, want, p)
		require.ErrorContains(t, err, `open installation "support" on `+string(p))
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var r integrations.Registry
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := message.Platform(fmt.Sprint("p", i%4))
			_ = r.Register(p, makeStill) // every name is taken by one of two
			if _, err := r.Open(p, "i", nil); err != nil {
				t.Error(err)
			}
			r.Platforms()
		})
	}
	wg.Wait()
	require.Len(t, r.Platforms(), 4)
}

func ExampleRegistry() {
	var r integrations.Registry
	if err := r.Register("dingtalk", makeStill); err != nil {
		fmt.Println(err)
	}
	_, err := r.Open("dingtak", "support", nil)
	fmt.Println(err)
	// Output: unknown platform "dingtak", did you mean "dingtalk"? (known: dingtalk)
}
