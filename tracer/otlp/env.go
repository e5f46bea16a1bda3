package otlp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
)

// FromEnv makes the exporter that the standard variables ask for; nil where they ask for none. It
// contacts nobody: a collector that is not there shows in Stats. A variable that makes no sense is
// an error. From then on the OpenTelemetry libraries' log lines and errors, of the whole program,
// go to Stats.LastError instead of stderr.
//
// Read here: OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER (none, or otlp),
// OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT and _PROTOCOL (grpc | http/protobuf, the default),
// OTEL_BSP_*. The OpenTelemetry exporters themselves read HEADERS, TIMEOUT, INSECURE, CERTIFICATE,
// CLIENT_CERTIFICATE, CLIENT_KEY and COMPRESSION.
func FromEnv() (*Exporter, error) {
	endpoint := tracesEnv("ENDPOINT")
	if endpoint == "" || disabled() {
		return nil, nil
	}
	if kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: only otlp and none are supported", kind)
	}
	said := takeComplaints()
	client, err := newClient(tracesEnv("PROTOCOL"))
	if err != nil {
		return nil, err
	}
	if err := said.first(); err != nil { // the client is silent about what it could not use
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ variables: %w", err)
	}
	sink, err := otlptrace.New(context.Background(), client)
	if err != nil {
		return nil, fmt.Errorf("start span exporter for %s: %w", endpoint, err)
	}
	e := New(sink, Options{
		Endpoint:  endpoint,
		QueueSize: envInt("OTEL_BSP_MAX_QUEUE_SIZE"), BatchSize: envInt("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
		Delay:         time.Duration(envInt("OTEL_BSP_SCHEDULE_DELAY")) * time.Millisecond,
		ExportTimeout: time.Duration(envInt("OTEL_BSP_EXPORT_TIMEOUT")) * time.Millisecond,
	})
	said.forward(e)
	return e, nil
}

func newClient(protocol string) (otlptrace.Client, error) {
	switch protocol {
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: use grpc or http/protobuf", protocol)
}

func disabled() bool {
	return strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none"
}

// tracesEnv reads a variable in its form for traces, else the general one.
func tracesEnv(name string) string {
	if v := strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name)); v != "" {
		return v
	}
	return strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_" + name))
}

// envInt is a variable's number, 0 where it has none: the default then.
func envInt(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Resource describes this process to a collector: the program's name unless OTEL_SERVICE_NAME or
// OTEL_RESOURCE_ATTRIBUTES say otherwise.
func Resource() *resource.Resource {
	own := resource.NewSchemaless(
		attribute.String("service.name", filepath.Base(os.Args[0])),
		attribute.Int("process.pid", os.Getpid()),
	)
	if host, err := os.Hostname(); err == nil {
		own = merge(own, resource.NewSchemaless(attribute.String("host.name", host)))
	}
	return merge(own, resource.Environment())
}

// merge lets b win.
func merge(a, b *resource.Resource) *resource.Resource {
	m, err := resource.Merge(a, b)
	if err != nil { // schemas differ: the attributes are merged all the same
		return resource.NewSchemaless(append(a.Attributes(), b.Attributes()...)...)
	}
	return m
}
