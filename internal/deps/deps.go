// Package deps pins modules while the tree is being built.
package deps

import (
	_ "github.com/goccy/go-yaml"
	_ "github.com/goccy/go-yaml/ast"
	_ "github.com/goccy/go-yaml/parser"
	_ "github.com/gorilla/websocket"
	_ "github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/term"
	_ "golang.org/x/time/rate"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
