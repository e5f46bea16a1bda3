package prover

import "context"

// SetupSubcommand is the hidden subcommand by which a program runs SetupMain.
const SetupSubcommand = "setup-child"

// SetupMain is the set-up child: it compiles the circuit, sets up its keys and puts both into the cache, by rename. args are
// those that Run appended to Config.SetupCommand. It records itself as a further source of the parent's trace.
// A program that calls Run must call it when started with SetupSubcommand.
func SetupMain(ctx context.Context, args []string) error { panic("to be written") }
