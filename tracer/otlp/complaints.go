package otlp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// complaints takes over what the OpenTelemetry libraries would print on the program's stderr: a
// variable that makes no sense, a resource that cannot be read. Until an Exporter takes them the
// first is kept.
type complaints struct {
	mu   sync.Mutex
	kept error // the first
	to   *Exporter
}

// takeComplaints installs it, for the whole program: the libraries have one logger and one handler.
func takeComplaints() *complaints {
	c := &complaints{}
	otel.SetLogger(logr.New(c))
	otel.SetErrorHandler(c)
	return c
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to != nil {
		c.to.complain(err)
		return
	}
	if c.kept == nil {
		c.kept = err
	}
}

// first is the first that nobody took, or nil.
func (c *complaints) first() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

// forward gives e what comes from now on.
func (c *complaints) forward(e *Exporter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = e
}

// Error implements logr.LogSink. The values are left out: headers hold secrets.
func (c *complaints) Error(err error, msg string, _ ...any) {
	if err == nil {
		err = errors.New(msg)
	} else {
		err = fmt.Errorf("%s: %w", msg, err)
	}
	c.Handle(err)
}

// Init implements logr.LogSink.
func (c *complaints) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: only errors count.
func (c *complaints) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (c *complaints) Info(int, string, ...any) {}

// WithValues implements logr.LogSink.
func (c *complaints) WithValues(...any) logr.LogSink { return c }

// WithName implements logr.LogSink.
func (c *complaints) WithName(string) logr.LogSink { return c }
