//go:build unix

package edge_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
)

// A file that never ends, or waits for a writer, would hold up every handshake.
func TestNoEndlessCertificateIsRead(t *testing.T) {
	t.Parallel()
	cert, key, trust := certificate(t)
	b := serve(t, edge.Config{CertFile: cert, KeyFile: key})
	require.NoError(t, os.Remove(key))
	require.NoError(t, syscall.Mkfifo(key, 0o600))
	require.NoError(t, b.shake(trust), "the old pair stays")
	require.NoError(t, os.Remove(key))
	require.NoError(t, os.Symlink("/dev/zero", key))
	require.NoError(t, b.shake(trust))
	require.Contains(t, b.log.String(), "is no file of at most")
}
