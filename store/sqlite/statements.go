package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-io/penstock/store"
)

// batchRows are the sizes of inserts of many rows: one statement for many rows
// takes half the time of one for each, and few sizes keep the statements few.
var batchRows = [...]int{32, 8, 1}

// texts are the statements of one box and its dead letters.
type texts struct {
	insert, insertBody [len(batchRows)]string

	insertChanged string // a new item whose state is not that of a new one
	remove        string // numbers of a range
	removeBody    string
	attempted     string // what Begin changes
	changed       string // what Again and Postpone change
	numbers       string // those of a page
	item          string // what a dead letter needs
	ids           string // those that a commit gave numbers
	count         string

	heads, load, show, ended string // for readers
}

// Statements of the dead letters and the commits.
const (
	insertDead = `INSERT INTO dead (box, seq, inst, conv, at, attempts, reason, body)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`
	removeDead = `DELETE FROM dead WHERE box = ?1 AND seq = ?2`
	hasDead    = `SELECT 1 FROM dead WHERE box = ?1 AND seq = ?2`
	getDead    = `SELECT inst, conv, body FROM dead WHERE box = ?1 AND seq = ?2`
	countDead  = `SELECT count(*) FROM dead WHERE box = ?1`
	oldDead    = `SELECT box, seq FROM dead WHERE at < ?1 AND n <= (
		SELECT coalesce(max(n), 0) FROM (SELECT n FROM dead ORDER BY n LIMIT ?2))`

	deadLetters = `SELECT box, seq, attempts, at, reason, body FROM dead
		ORDER BY n DESC LIMIT ?1`
	showDead = `SELECT seq, inst, conv, 0 AS state, attempts, at AS added, 0 AS later, reason, body
		FROM dead`
	deadState = `SELECT attempts, at, reason FROM dead WHERE box = ?1 AND seq = ?2`

	insertCommit = `INSERT INTO commits (n, at, in_last, out_last, in_count, out_count,
		in_low, in_high, out_low, out_high, in_ids, out_ids, ends)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`
	lastCommit = `SELECT n, at, in_last, out_last, in_count, out_count FROM commits
		ORDER BY n DESC LIMIT 1`
	allCommits = `SELECT n, in_ids, out_ids FROM commits ORDER BY n`
	oldCommits = `SELECT n, at, in_ids, out_ids, ends FROM commits
		WHERE n > ?1 AND n < (SELECT max(n) FROM commits) ORDER BY n LIMIT ?2`
	laterReplies = `SELECT out_ids FROM commits
		WHERE n >= ?1 AND at <= ?2 AND length(out_ids) > 0 ORDER BY n`
	trimCommit = `UPDATE commits SET in_ids = ?2, out_ids = ?3, ends = ?4 WHERE n = ?1`
	dropCommit = `DELETE FROM commits WHERE n = ?1`

	setRunning = `UPDATE meta SET v = ?1 WHERE k = 'running'`
	getRunning = `SELECT v FROM meta WHERE k = 'running'`
)

// Statements of the leases.
const (
	getLease = `SELECT owner, fence, until FROM leases WHERE name = ?1`
	setLease = `INSERT INTO leases (name, owner, fence, until) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (name) DO UPDATE SET owner = ?2, fence = ?3, until = ?4`
)

// textsOf gives the statements of a box of items.
func textsOf(b store.Box) *texts {
	side := "in"
	if b == store.BoxOutbox {
		side = "out"
	}
	r := strings.NewReplacer("{items}", side+"box", "{body}", side+"_body", "{side}", side)
	t := &texts{
		insertChanged: `INSERT INTO {items} (added, seq, inst, conv, state, attempts, at, reason)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
		remove:     `DELETE FROM {items} WHERE seq BETWEEN ?1 AND ?2`,
		removeBody: `DELETE FROM {body} WHERE seq BETWEEN ?1 AND ?2`,
		attempted:  `UPDATE {items} SET state = ?2, attempts = ?3 WHERE seq = ?1`,
		changed: `UPDATE {items} SET state = ?2, attempts = ?3, at = ?4, reason = ?5
			WHERE seq = ?1`,
		numbers: `SELECT seq FROM {items} WHERE seq BETWEEN ?1 AND ?2`,
		item:    `SELECT inst, conv, body FROM {items} JOIN {body} USING (seq) WHERE seq = ?1`,
		ids:     `SELECT at, {side}_ids FROM commits WHERE n = ?1`,
		count:   `SELECT count(*) FROM {items}`,
		heads:   `SELECT seq, inst, conv FROM {items} WHERE seq > ?1 ORDER BY seq LIMIT ?2`,
		load: `SELECT seq, state, attempts, at, body FROM {items} CROSS JOIN {body} USING (seq)
			WHERE seq IN (SELECT value FROM json_each(?1)) ORDER BY seq`,
		show: `SELECT seq, inst, conv, state, attempts, added, at, coalesce(reason, ''), body
			FROM {items} CROSS JOIN {body} USING (seq)`, // filters come before bodies
		ended: `SELECT at, ends FROM commits WHERE {side}_low <= ?1 AND {side}_high >= ?1
			ORDER BY n DESC`,
	}
	for i, n := range batchRows {
		t.insert[i] = "INSERT INTO {items} (added, seq, inst, conv) VALUES " +
			rowsOf(n, func(row int) string {
				return fmt.Sprintf("(?1, ?%d, ?%d, ?%d)", 3*row+2, 3*row+3, 3*row+4)
			})
		t.insertBody[i] = "INSERT INTO {body} (seq, body) VALUES " +
			rowsOf(n, func(row int) string {
				return fmt.Sprintf("(?%d, ?%d)", 2*row+1, 2*row+2)
			})
	}
	for _, text := range t.all() {
		*text = r.Replace(*text)
	}
	return t
}

func rowsOf(n int, row func(int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = row(i)
	}
	return strings.Join(rows, ", ")
}

// all gives every text of the box, the shortest inserts last.
func (t *texts) all() []*string {
	all := []*string{
		&t.insertChanged, &t.remove, &t.removeBody, &t.attempted, &t.changed, &t.numbers, &t.item,
		&t.ids, &t.count,
		&t.heads, &t.load, &t.show, &t.ended,
	}
	for i := range batchRows {
		all = append(all, &t.insert[i], &t.insertBody[i])
	}
	return all
}

// allStatements gives every statement that needs the schema, of inserts the
// shortest.
func allStatements() []string {
	all := []string{
		insertDead, removeDead, hasDead, getDead, countDead, oldDead, insertCommit,
		lastCommit, allCommits, oldCommits, trimCommit, dropCommit, setRunning, getRunning,
		getLease, setLease,
		deadLetters, showDead, deadState,
	}
	for _, b := range []store.Box{store.BoxInbox, store.BoxOutbox} {
		texts := textsOf(b).all()
		for _, text := range slices.Delete(texts, len(texts)-2*len(batchRows), len(texts)-2) {
			all = append(all, *text)
		}
	}
	return all
}
