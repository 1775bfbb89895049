package main

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/test/bench/internal/socket"
)

// logGroup bounds how many frames wait for one flush.
const logGroup = 1024

// serveLog is the least that an acknowledgement which means "on disk" can cost: one
// goroutine reads, one appends what has come, flushes it and acknowledges.
func serveLog(ws *websocket.Conn, path string, handled *atomic.Int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	frames := make(chan []byte, logGroup) // closed by the reader
	read := make(chan error, 1)
	go func() {
		defer close(frames)
		for {
			_, raw, err := ws.ReadMessage()
			if err != nil {
				read <- err
				return
			}
			frames <- raw
		}
	}()
	for raw := range frames {
		group := takeWaiting(raw, frames)
		if err := keep(f, group); err != nil {
			return err
		}
		if err := ackAll(ws, group); err != nil {
			return err
		}
		handled.Add(int64(len(group)))
	}
	return <-read
}

// takeWaiting gives a frame and those that have come by now.
func takeWaiting(raw []byte, frames <-chan []byte) [][]byte {
	group := [][]byte{raw}
	for len(group) < logGroup {
		select {
		case next, ok := <-frames:
			if !ok {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// keep appends frames in one write and brings them to the disk.
func keep(f *os.File, group [][]byte) error {
	var all []byte
	for _, raw := range group {
		all = append(all, raw...)
	}
	if _, err := f.Write(all); err != nil {
		return err
	}
	return syscall.Fdatasync(int(f.Fd()))
}

func ackAll(ws *websocket.Conn, group [][]byte) error {
	for _, raw := range group {
		id, err := read(raw, false)
		if err != nil {
			return err
		}
		if err := ws.WriteMessage(websocket.TextMessage, socket.Ack(id)); err != nil {
			return err
		}
	}
	return nil
}
