package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	sqlite "modernc.org/sqlite"
)

const (
	newPageSize  = 4096        // of a new file
	fullSync     = 2           // what PRAGMA synchronous says of FULL
	logLimit     = 64 << 20    // what the log file is cut to when it is reset
	readerCache  = 8 << 20     // of each reading connection
	maxReaders   = 4           // reading connections at once
	readerPatrol = time.Minute // after which an idle one is closed
)

// settings are what every connection needs, after the size of pages, which can be
// set only before WAL.
const settings = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = %d;
PRAGMA cache_size = -%d;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA max_page_count = %d;
`

// connect opens a connection that may write. It waits so long for locks.
func (s *Store) connect(ctx context.Context, wait time.Duration) (*conn, error) {
	c, err := dial(ctx, s.cfg.Path, readWrite)
	if err != nil {
		return nil, err
	}
	if err := c.configure(s.cfg, wait); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) configure(cfg Config, wait time.Duration) error {
	if err := c.waitFor(wait); err != nil {
		return err
	}
	if err := c.sizePages(); err != nil {
		return err
	}
	maxPages := int64(1<<32 - 2) // what SQLite itself allows
	if cfg.MaxBytes > 0 {
		maxPages = max(1, cfg.MaxBytes/c.pageSize)
	}
	err := c.script(fmt.Sprintf(settings, logLimit, cfg.CacheBytes/1024, maxPages))
	if err != nil {
		return err
	}
	var mode string
	if _, err := c.one("PRAGMA journal_mode", nil, func(r row) { mode = r.text(0) }); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("sqlite: journal mode is %q instead of wal", mode)
	}
	return c.assertSync()
}

// sizePages sets the size of pages in a file that is new, and reads it: a file keeps
// the size that it was made with.
func (c *conn) sizePages() (err error) {
	if err := c.script(fmt.Sprintf("PRAGMA page_size = %d", newPageSize)); err != nil {
		return err
	}
	c.pageSize, err = c.number("PRAGMA page_size")
	if err == nil && c.pageSize <= 0 {
		err = fmt.Errorf("sqlite: page size is %d", c.pageSize)
	}
	return err
}

// assertSync makes sure that a commit is on the disk when it returns. It reads
// first, because the first read of a connection is what may change the setting.
func (c *conn) assertSync() error {
	if _, err := c.number("SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	n, err := c.number("PRAGMA synchronous")
	if err == nil && n != fullSync {
		err = fmt.Errorf("sqlite: synchronous is %d instead of %d", n, fullSync)
	}
	return err
}

// waitFor sets how long SQLite itself waits for a lock.
func (c *conn) waitFor(d time.Duration) error {
	return c.script(fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
}

// readConnector opens the connections of readers.
type readConnector struct {
	driver.Connector
	wait time.Duration
}

// Connect implements driver.Connector.
func (r readConnector) Connect(ctx context.Context) (driver.Conn, error) {
	d, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{c: d, stmts: make(map[string]statement)}
	err = errors.Join(c.waitFor(r.wait), c.script(fmt.Sprintf(
		"PRAGMA query_only = ON; PRAGMA synchronous = FULL; PRAGMA cache_size = -%d; "+
			"PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF", readerCache/1024)))
	if err == nil {
		err = c.assertSync()
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	for _, st := range c.stmts {
		err = errors.Join(err, st.Close())
	}
	return d, err
}

// readStatements are the readers' frequent statements, by box.
type readStatements struct{ heads, load [2]*sql.Stmt }

func (r *readStatements) close() error {
	var errs []error
	for b := range r.heads {
		for _, st := range []*sql.Stmt{r.heads[b], r.load[b]} {
			if st != nil {
				errs = append(errs, st.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// openReaders makes the pool of connections that only read. Their reads are short:
// while one lasts, the log cannot begin anew.
func (s *Store) openReaders(ctx context.Context) (err error) {
	connector, err := sqlite.NewConnector(source(s.cfg.Path, readOnly))
	if err != nil {
		return err
	}
	s.readers = sql.OpenDB(readConnector{connector, s.cfg.BusyWait})
	s.readers.SetMaxOpenConns(maxReaders)
	s.readers.SetConnMaxIdleTime(readerPatrol)
	for b := range s.boxes {
		if s.read.heads[b], err = s.readers.PrepareContext(ctx, s.boxes[b].text.heads); err != nil {
			return err
		}
		if s.read.load[b], err = s.readers.PrepareContext(ctx, s.boxes[b].text.load); err != nil {
			return err
		}
	}
	return nil
}
