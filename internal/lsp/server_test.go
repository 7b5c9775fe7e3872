// The life of a session: what is answered when, and how mistakes of clients and sessions end.

package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// echo answers with its params.
type echo struct {
	begun chan struct{} // closed when "wait" has begun
	notes []string
}

func (e *echo) Request(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "echo", "initialize":
		return params, nil
	case "wait":
		close(e.begun)
		<-ctx.Done()
		return "too late", nil
	case "fail":
		return nil, errors.New("it failed")
	case "refuse":
		_, err := Params[Position](params)
		return nil, err
	case "panic":
		panic("out of range")
	}
	return nil, ErrNoMethod
}

func (e *echo) Notify(method string, params json.RawMessage) error {
	e.notes = append(e.notes, method)
	if method == "bad" {
		return errors.New("bad note")
	}
	return nil
}

const (
	initialize = `{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}`
	shutdown   = `{"jsonrpc": "2.0", "id": "z", "method": "shutdown"}`
	exit       = `{"jsonrpc": "2.0", "method": "exit"}`
	began      = `{"jsonrpc":"2.0","id":0,"result":{}}`
	ended      = `{"jsonrpc":"2.0","id":"z","result":null}`
)

// converse serves messages and returns what was answered.
func converse(t *testing.T, session Session, messages ...string) ([]string, error) {
	t.Helper()
	var in, out bytes.Buffer
	w := NewWriter(&in)
	for _, m := range messages {
		require.NoError(t, w.Write([]byte(m)))
	}
	err := Serve(t.Context(), &in, NewClient(NewWriter(&out)), session)
	answers := readAll(t, NewReader(&out))
	return answers[:len(answers)-1], err
}

func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		name     string
		messages []string
		want     []string
		err      error
	}{
		{"a session", []string{initialize, `{"jsonrpc": "2.0", "id": 7, "method": "echo", "params": [1]}`, shutdown, exit},
			[]string{began, `{"jsonrpc":"2.0","id":7,"result":[1]}`, ended}, nil},
		{"exit without shutdown", []string{initialize, exit}, []string{began}, ErrNoExit},
		{"exit without anything", []string{exit}, []string{}, ErrNoExit},
		{"the end without exit", []string{initialize, shutdown}, []string{began, ended}, ErrNoExit},
		{"before initialize", []string{`{"jsonrpc": "2.0", "id": 1, "method": "echo"}`, `{"jsonrpc": "2.0", "method": "note"}`, initialize, shutdown, exit},
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"echo came before initialize"}}`, began, ended}, nil},
		{"initialize twice", []string{initialize, strings.Replace(initialize, "0,", "1,", 1), shutdown, exit},
			[]string{began, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"initialize came twice"}}`, ended}, nil},
		{"after shutdown", []string{initialize, shutdown, `{"jsonrpc": "2.0", "id": 1, "method": "echo"}`, exit},
			[]string{began, ended, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"echo came after shutdown"}}`}, nil},
		{"unknown methods", []string{initialize, `{"jsonrpc": "2.0", "id": 1, "method": "dance"}`, `{"jsonrpc": "2.0", "method": "$/dance"}`, shutdown, exit},
			[]string{began, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method \"dance\""}}`, ended}, nil},
		{"failures", []string{initialize, `{"jsonrpc": "2.0", "id": 1, "method": "fail"}`, `{"jsonrpc": "2.0", "id": 2, "method": "refuse", "params": {"line": "x"}}`,
			`{"jsonrpc": "2.0", "id": 3, "method": "refuse"}`, `{"jsonrpc": "2.0", "method": "bad"}`, shutdown, exit},
			[]string{began, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it failed"}}`,
				`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"params: json: cannot unmarshal string into Go struct field Position.line of type int"}}`,
				`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"params are missing"}}`,
				`{"jsonrpc":"2.0","method":"window/logMessage","params":{"type":1,"message":"bad: bad note"}}`, ended}, nil},
		{"no messages", []string{`{`, `[]`, `7`, `{"id": 1, "method": "echo"}`, `{"jsonrpc": "2.0", "id": {}, "method": "echo"}`, `{"jsonrpc": "2.0", "id": 5}`, initialize, shutdown, exit},
			[]string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unexpected end of JSON input"}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches of messages are not part of the protocol"}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"json: cannot unmarshal number into Go value of type lsp.message"}}`,
				`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the message has no \"jsonrpc\": \"2.0\""}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"an id must be a number or a string"}}`,
				`{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"the message has no method"}}`, began, ended}, nil},
		{"answers that nobody asked for", []string{initialize, `{"jsonrpc": "2.0", "id": 1, "result": null}`, shutdown, exit}, []string{began, ended}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers, err := converse(t, &echo{}, c.messages...)
			require.Equal(t, c.err, err)
			require.Equal(t, c.want, append([]string{}, answers...))
		})
	}
}

func TestAPanicEndsOneRequest(t *testing.T) {
	answers, err := converse(t, &echo{}, initialize, `{"jsonrpc": "2.0", "id": 1, "method": "panic"}`, shutdown, exit)
	require.NoError(t, err)
	require.Len(t, answers, 3)
	require.Contains(t, answers[1], "internal error, please report it: out of range")
}

func TestBadFramingIsReported(t *testing.T) {
	var out bytes.Buffer
	in := "hello\r\nContent-Length: " + "65\r\n\r\n" + initialize
	require.Len(t, initialize, 65)
	require.Equal(t, ErrNoExit, Serve(t.Context(), strings.NewReader(in), NewClient(NewWriter(&out)), &echo{}))
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"expected a header, got \"hello\""}}`, began, "EOF"}, readAll(t, NewReader(&out)))
}

// A request is cancelled while it runs, and another while it waits behind that one.
func TestCancelledRequests(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, client := io.Pipe()
	answers, out := io.Pipe()
	session := &echo{begun: make(chan struct{})}
	served := make(chan error)
	go func() { served <- Serve(t.Context(), in, NewClient(NewWriter(out)), session) }()
	w, r := NewWriter(client), NewReader(answers)
	send := func(message string) { require.NoError(t, w.Write([]byte(message))) }
	expect := func(want string) {
		body, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
	send(initialize)
	expect(began)
	send(`{"jsonrpc": "2.0", "id": 1, "method": "wait"}`)
	<-session.begun
	send(`{"jsonrpc": "2.0", "id": "two", "method": "echo"}`)
	send(`{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "two"}}`)
	send(`{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}`)
	send(`{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}`)
	expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the request was cancelled"}}`)
	expect(`{"jsonrpc":"2.0","id":"two","error":{"code":-32800,"message":"the request was cancelled"}}`)
	send(shutdown)
	expect(ended)
	send(exit)
	require.NoError(t, <-served)
	client.Close()
}

func TestServeEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := context.WithCancelCause(t.Context())
	in, client := io.Pipe()
	stop(errors.New("interrupted"))
	require.EqualError(t, Serve(ctx, in, NewClient(NewWriter(io.Discard)), &echo{}), "interrupted")
	client.Close()
}
