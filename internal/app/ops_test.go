package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/ops"
)

func TestSocketPath(t *testing.T) {
	for _, tt := range []struct{ kind, socket, want string }{
		{"sqlite", "", "d/p.db.sock"},
		{"sqlite", "off", ""},
		{"sqlite", "/run/p.sock", "/run/p.sock"},
		{"memory", "", ""},
		{"memory", "off", ""},
		{"memory", "/run/p.sock", "/run/p.sock"},
	} {
		cfg := config.Default()
		cfg.Store.Kind, cfg.Store.Path, cfg.Admin.Socket = tt.kind, "d/p.db", tt.socket
		require.Equal(t, tt.want, app.SocketPath(&cfg), "%+v", tt)
	}
}

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A store whose path is too long for a socket is no reason not to serve; a path
// that was asked for and cannot be had is.
func TestServiceWithoutASocket(t *testing.T) {
	cfg := config.Default()
	cfg.Admin.Listen, cfg.StopWithin = "off", 5*time.Second
	cfg.Store.Path = filepath.Join(t.TempDir(), strings.Repeat("x", 80), "p.db")
	var logged lockedBuffer
	a, err := app.New(&cfg, app.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "no admin socket") },
		10*time.Second, time.Millisecond)
	op, err := app.Operate(ctx, &cfg, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "is in use by process")
	require.Nil(t, op)
	cancel()
	require.NoError(t, <-done)

	op, err = app.Operate(t.Context(), &cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.False(t, op.Running)
	list, err := op.List(t.Context(), ops.Query{Box: "inbox"})
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, op.Close())

	cfg.Admin.Socket = filepath.Join(t.TempDir(), "taken")
	require.NoError(t, os.WriteFile(cfg.Admin.Socket, nil, 0o600))
	a, err = app.New(&cfg, app.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, a.Run(t.Context()), "not a socket")
}
