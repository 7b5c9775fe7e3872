// The server: reads messages, keeps the life of a session in order, and answers. What requests mean is the Session's business.

package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
)

// Codes of errors, as JSON-RPC and the protocol number them.
const (
	CodeParseError           = -32700
	CodeInvalidRequest       = -32600
	CodeMethodNotFound       = -32601
	CodeInvalidParams        = -32602
	CodeInternalError        = -32603
	CodeServerNotInitialized = -32002
	CodeRequestCancelled     = -32800
)

// Error is what a request may end with.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// ErrNoMethod is what a Session returns for a method that it does not have.
var ErrNoMethod = errors.New("no such method")

// ErrNoExit is what Serve returns where the client left without shutdown and exit.
var ErrNoExit = errors.New("the client left without shutdown and exit")

// Session answers requests. Serve calls it from one goroutine, in the order of the messages.
type Session interface {
	// Request answers initialize and all later requests but shutdown. An error of type *Error goes to the client as it is;
	// ErrNoMethod says that there is no such method; any other becomes an internal error.
	Request(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Notify takes a notification. Unknown ones are ignored.
	Notify(method string, params json.RawMessage) error
}

// Client is the other end: what a Session uses to say something unasked.
type Client struct{ out *Writer }

// NewClient returns the client that reads from out.
func NewClient(out *Writer) *Client { return &Client{out} }

// Notify sends a notification.
func (c *Client) Notify(method string, params any) error {
	return c.send(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// Log shows a message in the editor's log.
func (c *Client) Log(format string, args ...any) error {
	const messageError = 1
	return c.Notify("window/logMessage", struct {
		Type    int    `json:"type"`
		Message string `json:"message"`
	}{messageError, fmt.Sprintf(format, args...)})
}

func (c *Client) send(message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return c.out.Write(body)
}

// reply answers a request. A request that could not be read has the id null.
func (c *Client) reply(id json.RawMessage, result any, wrong *Error) error {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	if wrong != nil {
		return c.send(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *Error          `json:"error"`
		}{"2.0", id, wrong})
	}
	return c.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

// message is a request, a notification, or an answer of the client's.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

func (m *message) isRequest() bool { return len(m.ID) > 0 }

// hasID reports whether the id is a number, a string, null or left out.
func (m *message) hasID() bool {
	id := bytes.TrimSpace(m.ID)
	return len(id) == 0 || id[0] != '{' && id[0] != '[' && id[0] != 't' && id[0] != 'f'
}

// problem says why a message is none, or nil.
func (m *message) problem() *Error {
	switch {
	case m.Version != "2.0":
		return &Error{CodeInvalidRequest, `the message has no "jsonrpc": "2.0"`}
	case !m.hasID():
		return &Error{CodeInvalidRequest, "an id must be a number or a string"}
	case m.Method == nil && len(m.Result) == 0 && len(m.Error) == 0:
		return &Error{CodeInvalidRequest, "the message has no method"}
	}
	return nil
}

// life is where a session stands.
type life uint8

const (
	unborn life = iota // initialize has not come
	alive
	down // shutdown has come
)

// server is one session's.
type server struct {
	session Session
	client  *Client
	life    life
	mu      sync.Mutex
	running map[string]context.CancelFunc // requests that are not answered yet, by their id
}

// task is a message with what it needs while it waits for its turn.
type task struct {
	message
	ctx   context.Context
	done  context.CancelFunc
	wrong *Error // the message could not be read
}

// Serve reads messages from in and lets the session answer them until the client says exit, the input ends or ctx does. The error is nil
// after shutdown and exit, and ErrNoExit where the client just left.
func Serve(ctx context.Context, in io.Reader, client *Client, session Session) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &server{session: session, client: client, running: map[string]context.CancelFunc{}}
	tasks := make(chan *task, 64)
	var ended error // why reading ended; set before tasks is closed
	go func() {
		defer close(tasks)
		ended = s.read(ctx, NewReader(in), tasks)
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case t, more := <-tasks:
			if !more {
				if ended == io.EOF || errors.Is(ended, io.ErrUnexpectedEOF) {
					return ErrNoExit
				}
				return ended
			}
			exit, err := s.handle(t)
			if exit && s.life != down {
				return ErrNoExit
			}
			if exit || err != nil {
				return err
			}
		}
	}
}

// read reads messages ahead of their turn, so that a request can be cancelled while others are before it.
func (s *server) read(ctx context.Context, in *Reader, tasks chan<- *task) error {
	for {
		body, err := in.Read()
		t := &task{ctx: ctx, done: func() {}}
		var framing *FramingError
		switch {
		case errors.As(err, &framing):
			t.wrong = &Error{CodeParseError, framing.Problem}
		case err != nil:
			return err
		default:
			t.decode(body)
		}
		if t.wrong == nil && t.Method != nil && *t.Method == "$/cancelRequest" {
			s.cancel(t.Params)
			continue
		}
		if t.wrong == nil && t.isRequest() && t.Method != nil {
			t.ctx, t.done = context.WithCancel(ctx)
			s.mu.Lock()
			s.running[string(t.ID)] = t.done
			s.mu.Unlock()
		}
		select {
		case tasks <- t:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *task) decode(body []byte) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		t.wrong = &Error{CodeInvalidRequest, "batches of messages are not part of the protocol"}
		return
	}
	if err := json.Unmarshal(body, &t.message); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			t.wrong = &Error{CodeInvalidRequest, err.Error()}
		} else {
			t.wrong = &Error{CodeParseError, err.Error()}
		}
		return
	}
	if t.wrong = t.problem(); t.wrong != nil && !t.hasID() {
		t.ID = nil // an answer must not repeat it
	}
}

func (s *server) cancel(params json.RawMessage) {
	var cancelled struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(params, &cancelled) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.running[string(cancelled.ID)]; stop != nil {
		stop()
	}
}

// handle answers one message. The error is that of writing: there is nobody to talk to any more.
func (s *server) handle(t *task) (exit bool, err error) {
	switch {
	case t.wrong != nil:
		return false, s.client.reply(t.ID, nil, t.wrong)
	case t.Method == nil: // an answer, and nothing was asked
		return false, nil
	case !t.isRequest():
		if *t.Method == "exit" {
			return true, nil
		}
		if s.life != alive {
			return false, nil
		}
		if _, err := s.guarded(func() (any, error) { return nil, s.session.Notify(*t.Method, t.Params) }); err != nil {
			return false, s.client.Log("%s: %v", *t.Method, err)
		}
		return false, nil
	}
	result, wrong := s.answer(t)
	if wrong == nil && t.ctx.Err() != nil {
		wrong = &Error{CodeRequestCancelled, "the request was cancelled"}
	}
	s.mu.Lock()
	delete(s.running, string(t.ID))
	s.mu.Unlock()
	t.done()
	return false, s.client.reply(t.ID, result, wrong)
}

// answer does what a request asks for.
func (s *server) answer(t *task) (any, *Error) {
	method := *t.Method
	switch {
	case t.ctx.Err() != nil:
		return nil, nil
	case s.life == down:
		return nil, &Error{CodeInvalidRequest, method + " came after shutdown"}
	case s.life == unborn && method != "initialize":
		return nil, &Error{CodeServerNotInitialized, method + " came before initialize"}
	case s.life == alive && method == "initialize":
		return nil, &Error{CodeInvalidRequest, "initialize came twice"}
	case method == "shutdown":
		s.life = down
		return nil, nil
	}
	result, err := s.guarded(func() (any, error) { return s.session.Request(t.ctx, method, t.Params) })
	var known *Error
	switch {
	case err == nil:
		if method == "initialize" {
			s.life = alive
		}
		return result, nil
	case errors.Is(err, ErrNoMethod):
		return nil, &Error{CodeMethodNotFound, fmt.Sprintf("unknown method %q", method)}
	case errors.As(err, &known):
		return nil, known
	}
	return nil, &Error{CodeInternalError, err.Error()}
}

// guarded keeps a mistake of the session from ending the server: an editor would lose all help for it.
func (s *server) guarded(do func() (any, error)) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, fmt.Errorf("internal error, please report it: %v\n%s", v, debug.Stack())
		}
	}()
	return do()
}

// Params decodes the params of a request or notification.
func Params[T any](raw json.RawMessage) (*T, error) {
	params := new(T)
	if len(raw) == 0 {
		return nil, &Error{CodeInvalidParams, "params are missing"}
	}
	if err := json.Unmarshal(raw, params); err != nil {
		return nil, &Error{CodeInvalidParams, "params: " + err.Error()}
	}
	return params, nil
}
