module highwater

go 1.26.8

require (
	github.com/BurntSushi/toml v1.6.0 // configuration files and replay models, strict (unknown keys are errors)
	github.com/alecthomas/kong v1.17.0 // command-line grammar, help
	github.com/consensys/gnark v0.14.0 // circuit frontend, key types, verifier; exact version: its public types are our key format
	github.com/consensys/gnark-crypto v0.19.2 // curve, NTT and MSM on the CPU; gnark v0.14.0 is released with the v0.19 line
	github.com/go-logr/logr v1.4.4 // OpenTelemetry reports its own faults through it
	github.com/google/go-cmp v0.7.0 // tests: readable differences
	github.com/google/pprof v0.0.0-20261105003125-4bf881d7fb0b // pprof profiles of what held the memory
	github.com/jedib0t/go-pretty/v6 v6.9.2 // tables on a terminal
	github.com/klauspost/compress v1.17.9 // zstd pages of Parquet, decoded within our limits; the version parquet-go uses
	github.com/parquet-go/parquet-go v0.32.0 // trace files
	github.com/rogpeppe/go-internal v1.16.0 // tests: testscript for the command
	github.com/vbauerster/mpb/v8 v8.16.2 // progress bars
	go.opentelemetry.io/otel v1.47.0 // attributes, propagation
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // spans to a collector
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.47.0 // spans to a collector, gRPC
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0 // spans to a collector, HTTP
	go.opentelemetry.io/otel/sdk v1.47.0 // span creation; our SpanProcessor hangs on it
	go.opentelemetry.io/otel/trace v1.47.0 // span interfaces
	go.opentelemetry.io/proto/otlp v1.11.1 // tests: a loopback collector
	go.uber.org/goleak v1.3.0 // tests: goroutine leaks
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da // statistics of diff: benchmath, the code of benchstat
	golang.org/x/sys v0.50.0 // mmap, flock, fallocate, clocks, rusage
	golang.org/x/term v0.46.0 // is it a terminal, and how wide
	gonum.org/v1/gonum v0.17.0 // distributions and quantiles
	gonum.org/v1/plot v0.17.0 // charts as PNG and SVG
	google.golang.org/grpc v1.85.0 // tests: the loopback collector; OTLP transport
	google.golang.org/protobuf v1.36.12 // tests: decoding what the collector got
	pgregory.net/rapid v1.3.0 // tests: properties
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/acarl005/stripansi v0.0.0-20180116102854-5a71ef0e047d // indirect
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/andybalholm/brotli v1.1.1 // indirect
	github.com/bits-and-blooms/bitset v1.24.0 // indirect
	github.com/blang/semver/v4 v4.0.0 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.0 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.31.0 // indirect
	github.com/ingonyama-zk/icicle-gnark/v3 v3.2.2 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.30 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.21 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/ronanh/intcomp v1.1.1 // indirect
	github.com/rs/zerolog v1.34.0 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	github.com/vbauerster/cupwriter v0.0.5 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/image v0.46.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.50.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
)
