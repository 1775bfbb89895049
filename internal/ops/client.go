package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/penstock-io/penstock/message"
)

// Client is the API of the process that serves a socket.
type Client struct {
	// immutable
	http *http.Client
}

// Dial makes a client of the socket at path. ErrNobody means that no process
// serves it. Close is to be called in the end.
func Dial(ctx context.Context, path string) (*Client, error) {
	conn, err := dial(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	_ = conn.Close() // the verbs make connections of their own
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, path)
		},
		DisableCompression: true,
	}}}, nil
}

// Close lets go of the connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// List implements API.
func (c *Client) List(ctx context.Context, q Query) ([]Entry, error) {
	return call[[]Entry](ctx, c, "list", q)
}

// Show implements API.
func (c *Client) Show(ctx context.Context, ref Ref) (Item, error) {
	return call[Item](ctx, c, "show", ref)
}

// Requeue implements API.
func (c *Client) Requeue(ctx context.Context, ref Ref) (Moved, error) {
	return call[Moved](ctx, c, "requeue", ref)
}

// Purge implements API.
func (c *Client) Purge(ctx context.Context, ref Ref) error {
	_, err := call[nothing](ctx, c, "purge", ref)
	return err
}

// Replay implements API.
func (c *Client) Replay(ctx context.Context, ref Ref, route string) (Moved, error) {
	return call[Moved](ctx, c, "replay", replayRequest{ref, route})
}

// Send implements API.
func (c *Client) Send(ctx context.Context, m Send) (Sent, error) {
	return call[Sent](ctx, c, "send", m)
}

// Trace implements API.
func (c *Client) Trace(
	ctx context.Context, in message.InstallationID, id message.ID,
) ([]Trace, error) {
	return call[[]Trace](ctx, c, "trace", traceRequest{in, id})
}

// Consumers implements API.
func (c *Client) Consumers(ctx context.Context, name string) ([]Consumer, error) {
	return call[[]Consumer](ctx, c, "consumers", edgeRequest{name})
}

// Frames implements API.
func (c *Client) Frames(ctx context.Context, consumer string) ([]Frame, error) {
	return call[[]Frame](ctx, c, "frames", edgeRequest{consumer})
}

// Resend implements API.
func (c *Client) Resend(ctx context.Context, frame string) (Frame, error) {
	return call[Frame](ctx, c, "resend", resendRequest{frame})
}

// call asks the other side for one verb.
func call[Res any](ctx context.Context, c *Client, verb string, req any) (res Res, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	// The host is only there because a URL needs one.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://penstock/v1/"+verb,
		bytes.NewReader(body))
	if err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // its URL means nothing to anybody
		}
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	return decode[Res](resp, verb)
}

// decode reads a response.
func decode[Res any](resp *http.Response, verb string) (res Res, err error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err == nil && len(b) > maxResponse {
		err = fmt.Errorf("the answer is longer than %d bytes", maxResponse)
	}
	if err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	if resp.StatusCode != http.StatusOK {
		var f failure
		bare := json.Unmarshal(b, &f) != nil || f.Error.Kind == ""
		if bare && resp.StatusCode == http.StatusNotFound {
			return res, fmt.Errorf("%s: the service does not know how; it is older than this command", verb)
		}
		if bare {
			return res, fmt.Errorf("%s: the other side answered with status %d", verb, resp.StatusCode)
		}
		return res, &f.Error
	}
	if err := json.Unmarshal(b, &res); err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	return res, nil
}

// Collect gives the references of everything that a query selects, up to limit of
// them; 0 is no limit.
func Collect(ctx context.Context, api API, q Query, limit int) ([]Ref, error) {
	var refs []Ref
	err := Walk(ctx, api, q, limit, func(e *Entry) error {
		refs = append(refs, Ref{e.Box, e.Seq})
		return nil
	})
	return refs, err
}

// Walk calls fn for everything that a query selects, page by page, up to limit
// entries; 0 is no limit. It ends with fn's error.
func Walk(ctx context.Context, api API, q Query, limit int, fn func(*Entry) error) error {
	for n := 0; limit == 0 || n < limit; {
		q.Limit = MaxPage
		if limit > 0 {
			q.Limit = min(MaxPage, limit-n)
		}
		page, err := api.List(ctx, q)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := fn(&page[i]); err != nil {
				return err
			}
		}
		n += len(page)
		q.After = page[len(page)-1].Seq
	}
	return nil
}
