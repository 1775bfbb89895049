package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// appID marks a file as ours ("PnSt").
const appID = 0x506e5374

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema, forth and back.
type migration struct {
	name     string
	up, down string
}

// migrations gives the steps in order; the first leads to version 1.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.up.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]migration, len(names))
	for i, name := range names { // in order of the names
		base := strings.TrimSuffix(name, ".up.sql")
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(path.Base(base), want) {
			return nil, fmt.Errorf("sqlite: migration %s should begin with %s", name, want)
		}
		up, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		down, err := migrationFiles.ReadFile(base + ".down.sql")
		if err != nil {
			return nil, err
		}
		steps[i] = migration{path.Base(base), string(up), string(down)}
	}
	return steps, nil
}

// version gives the version of a file's schema, 0 for an empty file.
func (c *conn) version() (int, error) {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	v, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return 0, err
	}
	if id != appID && (v != 0 || tables != 0) {
		return 0, fmt.Errorf("%w: it is a database of another program", ErrDamaged)
	}
	return int(v), nil
}

// migrate brings a file to the given version, each step in a transaction of its
// own. A file that is newer than all steps is a *VersionError and stays as it is.
func (c *conn) migrate(file string, to int) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	v, err := c.version()
	if err != nil {
		return err
	}
	if v > len(steps) {
		return &VersionError{Path: file, File: v, Program: len(steps)}
	}
	for ; v < to; v++ {
		if err := c.step(steps[v].name, steps[v].up, v+1); err != nil {
			return err
		}
	}
	for ; v > to; v-- {
		if err := c.step(steps[v-1].name, steps[v-1].down, v-1); err != nil {
			return err
		}
	}
	return nil
}

// step runs one migration together with the version it leads to.
func (c *conn) step(name, text string, to int) error {
	err := c.script(fmt.Sprintf("BEGIN IMMEDIATE;\n%s;\nPRAGMA application_id = %d;\n"+
		"PRAGMA user_version = %d;\nCOMMIT", text, appID, to))
	if err == nil {
		return nil
	}
	err = fmt.Errorf("sqlite: migration %s: %w", name, err)
	if rerr := c.script("ROLLBACK"); rerr != nil && code(err) == 0 {
		err = errors.Join(err, rerr)
	}
	return err
}

// latest is the version that this program works with.
func latest() (int, error) {
	steps, err := migrations()
	return len(steps), err
}

// validate tells whether the schema is what the statements of this program need.
func (c *conn) validate() error {
	want, err := latest()
	if err != nil {
		return err
	}
	v, err := c.version()
	if err != nil {
		return err
	}
	if v != want {
		return fmt.Errorf("sqlite: schema version %d instead of %d", v, want)
	}
	for _, text := range allStatements() {
		if _, err := c.prepare(text); err != nil {
			return fmt.Errorf("sqlite: schema: %w", err)
		}
	}
	return nil
}
