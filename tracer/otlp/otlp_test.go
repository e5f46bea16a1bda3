package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"highwater/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m, nil) }

// patience is for machines that stand still for a while: only what hangs waits so long.
const patience = 3 * time.Minute

// received is what a collector in this process got.
type received struct {
	mu       sync.Mutex
	spans    map[string]int // by name
	services map[string]bool
	header   string // value of x-key
}

func (r *received) take(req *collector.ExportTraceServiceRequest, header string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spans == nil {
		r.spans, r.services = map[string]int{}, map[string]bool{}
	}
	r.header = header
	for _, rs := range req.GetResourceSpans() {
		for _, a := range rs.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				r.services[a.GetValue().GetStringValue()] = true
			}
		}
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				r.spans[s.GetName()]++
			}
		}
	}
}

func (r *received) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	req := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(b, req)
	}
	if err != nil || q.URL.Path != "/v1/traces" {
		http.Error(w, "not a trace request", http.StatusBadRequest)
		return
	}
	r.take(req, q.Header.Get("X-Key"))
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

type grpcCollector struct {
	collector.UnimplementedTraceServiceServer
	*received
}

func (g grpcCollector) Export(ctx context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	g.take(req, strings.Join(md.Get("x-key"), ","))
	return &collector.ExportTraceServiceResponse{}, nil
}

// clearEnv keeps the tests apart from what the machine has set.
func clearEnv(t *testing.T) {
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "OTEL_") {
			t.Setenv(k, "")
		}
	}
}

func listenGRPC(t *testing.T, r *received) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, grpcCollector{received: r})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return "http://" + l.Addr().String()
}

func listenHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// runSpans ends n spans through a provider that has only e, and shuts it down.
func runSpans(t *testing.T, e *Exporter, n int) {
	t.Helper()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e), sdktrace.WithResource(Resource()))
	endSpans(p, n)
	_ = p.Shutdown(context.Background()) // what it says stands in Stats too
}

func endSpans(p *sdktrace.TracerProvider, n int) {
	for range n {
		_, s := p.Tracer("test").Start(context.Background(), "prove_start")
		s.SetAttributes(attribute.Int("prover.job.id", 1))
		s.End()
	}
}

func TestDelivers(t *testing.T) {
	for _, c := range []struct{ protocol, compression string }{{"grpc", ""}, {"http/protobuf", ""}, {"", "gzip"}} {
		t.Run(c.protocol+c.compression, func(t *testing.T) {
			clearEnv(t)
			got := &received{}
			endpoint := ""
			if c.protocol == "grpc" {
				endpoint = listenGRPC(t, got)
			} else {
				endpoint = listenHTTP(t, got)
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", c.compression)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
			t.Setenv("OTEL_SERVICE_NAME", "my-prover")
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", strconv.FormatInt(patience.Milliseconds(), 10))
			t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", strconv.FormatInt(patience.Milliseconds(), 10))
			e, err := FromEnv()
			if err != nil {
				t.Fatal(err)
			}
			e.opts.DrainTimeout = patience
			const n = 1500 // several batches
			runSpans(t, e, n)
			got.mu.Lock()
			defer got.mu.Unlock()
			if got.spans["prove_start"] != n || !got.services["my-prover"] || got.header != "secret" {
				t.Errorf("collector has %v of %v, header %q", got.spans, got.services, got.header)
			}
			want := Stats{Endpoint: endpoint, Spans: n, Delivered: n}
			if s := e.Stats(); s != want {
				t.Errorf("stats %+v, want %+v", s, want)
			}
		})
	}
}

func TestNoCollectorAsked(t *testing.T) {
	for name, env := range map[string][2]string{
		"no endpoint":  {"OTEL_EXPORTER_OTLP_ENDPOINT", ""},
		"sdk disabled": {"OTEL_SDK_DISABLED", "true"},
		"no exporter":  {"OTEL_TRACES_EXPORTER", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(env[0], env[1])
			if e, err := FromEnv(); e != nil || err != nil {
				t.Errorf("exporter %v, %v", e, err)
			}
		})
	}
	if s := (*Exporter)(nil).Stats(); s != (Stats{}) || s.String() != "no collector" {
		t.Errorf("stats of none: %+v", s)
	}
}

func TestWrongEnvironment(t *testing.T) {
	for _, env := range [][2]string{{"OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon"}, {"OTEL_TRACES_EXPORTER", "zipkin"}} {
		clearEnv(t)
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv(env[0], env[1])
		if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), env[0]) || !strings.Contains(err.Error(), env[1]) {
			t.Errorf("%s=%s: %v", env[0], env[1], err)
		}
	}
}

// TestBadVariable: what the libraries only log is an error at the start, without its secrets.
func TestBadVariable(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://%%bad", "invalid URL escape"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "parse duration"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret", "parse headers: missing"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "no such file"},
	} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			t.Run(c.name+"/"+protocol, func(t *testing.T) {
				clearEnv(t)
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				t.Setenv(c.name, c.value)
				_, err := FromEnv()
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %q", err, c.want)
				}
			})
		}
	}
}

// TestLibraryErrors: what the libraries say later is the exporter's last error.
func TestLibraryErrors(t *testing.T) {
	clearEnv(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listenHTTP(t, &received{}))
	e, err := FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer runSpans(t, e, 0)
	otel.Handle(errors.New("resource: no"))
	if s := e.Stats(); s.LastError != "resource: no" {
		t.Errorf("stats %+v", s)
	}
}

// nobody is an address on which nobody listens: the socket that has it only keeps others from it.
func nobody(t *testing.T) string {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(s)
	t.Cleanup(func() { unix.Close(s) })
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// TestUndeliverable wants every span counted as dropped, with the reason, when the collector
// refuses, is not there, or never answers; and Shutdown to come back (a hang would end the test by
// its deadline).
func TestUndeliverable(t *testing.T) {
	gone := func(t *testing.T) string { return "http://" + nobody(t) }
	refuses := func(t *testing.T) string {
		return listenHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no thanks", http.StatusForbidden) }))
	}
	hangs := func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, never answers
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return "http://" + l.Addr().String()
	}
	for name, c := range map[string]struct {
		endpoint func(*testing.T) string
		protocol string
	}{
		"http, nobody there": {gone, "http/protobuf"}, "grpc, nobody there": {gone, "grpc"},
		"http, refuses": {refuses, "http/protobuf"}, "grpc, speaks http": {refuses, "grpc"},
		"http, hangs": {hangs, "http/protobuf"}, "grpc, hangs": {hangs, "grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.endpoint(t))
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
			e, err := FromEnv()
			if err != nil {
				t.Fatal(err)
			}
			e.opts.DrainTimeout = 300 * time.Millisecond
			const n = 20
			runSpans(t, e, n)
			s := e.Stats()
			if s.Spans != n || s.Dropped != n || s.Delivered != 0 || s.LastError == "" {
				t.Errorf("stats %+v", s)
			}
			if text := s.String(); !strings.Contains(text, "20 dropped: ") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// stuckSink blocks until it is let go or its context ends.
type stuckSink struct {
	entered chan struct{}
	letGo   chan struct{}
}

func (s *stuckSink) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	s.entered <- struct{}{}
	select {
	case <-s.letGo:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stuckSink) Shutdown(context.Context) error { return nil }

// TestQueueIsBounded fills the queue behind a collector that does not answer: ending a span still
// returns at once.
func TestQueueIsBounded(t *testing.T) {
	sink := &stuckSink{entered: make(chan struct{}, 1000), letGo: make(chan struct{})}
	e := New(sink, Options{QueueSize: 10, BatchSize: 1, ExportTimeout: patience, DrainTimeout: patience})
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	endSpans(p, 1)
	<-sink.entered  // the sender is stuck with this one
	endSpans(p, 50) // would deadlock here if OnEnd waited
	if s := e.Stats(); s.Spans != 51 || s.Dropped != 40 || !strings.Contains(s.LastError, "queue of 10 spans is full") {
		t.Errorf("stats %+v", s)
	}
	close(sink.letGo)
	if err := p.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Delivered != 11 || s.Dropped != 40 {
		t.Errorf("stats in the end %+v", s)
	}
	e.OnEnd(nil) // after Shutdown: counted, not kept
	if s := e.Stats(); s.Spans != 52 || s.Dropped != 41 {
		t.Errorf("stats after the end %+v", s)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	sink := &stuckSink{entered: make(chan struct{}, 1000), letGo: make(chan struct{})}
	e := New(sink, Options{QueueSize: 100, BatchSize: 2, DrainTimeout: 20 * time.Millisecond, ExportTimeout: time.Hour})
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	endSpans(p, 30)
	<-sink.entered                       // the first batch is under way: it is what gets cancelled
	_ = p.Shutdown(context.Background()) // returns although the sink never does by itself
	if s := e.Stats(); s.Dropped != 30 || s.Delivered != 0 || !strings.Contains(s.LastError, context.Canceled.Error()) {
		t.Errorf("stats %+v", s)
	}
	if err := errors.Join(e.Shutdown(context.Background()), e.ForceFlush(context.Background())); err != nil {
		t.Error(err)
	}
}

// TestEndBesideShutdown: a span that was about to end when Shutdown began is counted as dropped.
func TestEndBesideShutdown(t *testing.T) {
	sink := &stuckSink{entered: make(chan struct{}, 1000), letGo: make(chan struct{})}
	e := New(sink, Options{})
	if err := e.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	e.ended.Store(false) // as it was when the span's end asked
	e.OnEnd(nil)
	if s := e.Stats(); s.Spans != 1 || s.Dropped != 1 {
		t.Errorf("stats %+v", s)
	}
}
