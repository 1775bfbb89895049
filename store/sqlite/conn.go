package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	sqlite "modernc.org/sqlite"
)

// conn is one connection and the statements prepared on it. It is used by one
// goroutine at a time. It goes past database/sql, which has nothing to add for a
// connection that is never shared and takes a third of the time of a commit.
type conn struct {
	c     driver.Conn
	stmts map[string]statement
	args  []driver.NamedValue

	pageSize int64 // of the file, once it is configured
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// access is what a connection may do.
type access string

const (
	readWrite access = "rw"
	readOnly  access = "ro"
)

// source names the file for the driver. It never creates one, because a new file
// needs its mode and its page size first.
func source(path string, a access) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=" + string(a)}
	return u.String()
}

// dial opens a connection without settings.
func dial(ctx context.Context, path string, a access) (*conn, error) {
	connector, err := sqlite.NewConnector(source(path, a))
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: make(map[string]statement)}, nil
}

// close gives up the connection; what is under way is rolled back.
func (c *conn) close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.c.Close())...)
}

// prepare gives the statement for a text, from the second call on a ready one.
func (c *conn) prepare(text string) (statement, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	p, err := c.c.Prepare(text)
	if err != nil {
		return nil, err
	}
	s, ok := p.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("sqlite: statement is a %T", p), p.Close())
	}
	c.stmts[text] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and tells how many rows it changed. Arguments are int64,
// string, []byte or nil.
func (c *conn) exec(text string, args ...any) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	// A context that cannot end keeps the driver from starting a goroutine.
	res, err := s.ExecContext(context.Background(), c.bind(args))
	clear(c.args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// script runs a text of several statements.
func (c *conn) script(text string) error {
	x, ok := c.c.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("sqlite: connection is a %T", c.c)
	}
	_, err := x.ExecContext(context.Background(), text, nil)
	return err
}

// row is one row of a result. A value of another type than asked for is zero: the
// tables are strict.
type row []driver.Value

func (r row) int(i int) int64    { v, _ := r[i].(int64); return v }
func (r row) text(i int) string  { v, _ := r[i].(string); return v }
func (r row) bytes(i int) []byte { v, _ := r[i].([]byte); return v }

// errEnough ends a query that has given what was wanted.
var errEnough = errors.New("enough rows")

// query runs a statement and calls each for every row, which is valid during the
// call only. It ends at the first error of each, which is no error if it is
// errEnough.
func (c *conn) query(text string, args []any, each func(row) error) (err error) {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	clear(c.args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	dest := make(row, len(rows.Columns()))
	for {
		if err := rows.Next(dest); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(dest); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// one runs a statement that gives a single row, of which get takes what it needs.
// It tells whether there was one.
func (c *conn) one(text string, args []any, get func(row)) (found bool, err error) {
	err = c.query(text, args, func(r row) error {
		if !found {
			get(r)
		}
		found = true
		return nil
	})
	return found, err
}

// number runs a statement that gives a single number, 0 for null.
func (c *conn) number(text string, args ...any) (n int64, err error) {
	_, err = c.one(text, args, func(r row) { n = r.int(0) })
	return n, err
}
