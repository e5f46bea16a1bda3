package main

import (
	"context"

	"highwater/prover"
)

// setupChildCmd is the process in which prove sets keys up, so that the garbage of set-up never stays in the proving process.
type setupChildCmd struct {
	Args []string `arg:"" optional:"" passthrough:"all" help:"What prove gives it."`
}

// Run implements the subcommand. It ends with its parent, which also handles Ctrl-C.
func (c *setupChildCmd) Run(*tui) error { return prover.SetupMain(context.Background(), c.Args) }
