package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"highwater/tracer/setting"
)

// settingsGroup heads the settings in help.
var settingsGroup = kong.Group{
	Key: "settings",
	Title: "Settings (each also a key of the --config file and an environment variable: " +
		"partition_workers, HIGHWATER_PARTITION_WORKERS):",
}

// settingFlags is one flag for each row of the settings table, made from the table, so that a
// setting has one name everywhere.
type settingFlags struct {
	kong.Plugins
	target reflect.Value // pointer to the struct that kong fills: one *string or *bool a setting, nil where not given
}

func newSettingFlags() settingFlags {
	var fields []reflect.StructField
	for _, s := range setting.Table() {
		fields = append(fields, settingField(s))
	}
	target := reflect.New(reflect.StructOf(fields))
	return settingFlags{Plugins: kong.Plugins{target.Interface()}, target: target}
}

// settingField is the field of kong's struct for s. Its position is the setting's position in the
// table.
func settingField(s setting.Setting) reflect.StructField {
	typ, extra := reflect.TypeFor[*string](), fmt.Sprintf(` placeholder:"%s"`, placeholder(s))
	if s.Kind == setting.Bool {
		typ, extra = reflect.TypeFor[*bool](), ` negatable:""`
	}
	name := "F_" + s.Name
	tag := fmt.Sprintf(`name:"%s" group:"settings" help:%q%s`, s.Flag(), help(s), extra)
	return reflect.StructField{Name: name, Type: typ, Tag: reflect.StructTag(tag)}
}

func placeholder(s setting.Setting) string {
	switch s.Kind {
	case setting.Int, setting.Uint:
		return "N"
	case setting.Bytes:
		return "SIZE"
	case setting.Word:
		return strings.Join(s.Words, "|")
	}
	return "TEXT"
}

func help(s setting.Setting) string {
	// kong interpolates ${…} and splits tags on nothing else, so the sentence goes in as it is.
	return fmt.Sprintf("%s (default %s)", s.Doc, s.Default)
}

// given is the text of each setting that stood on the command line.
func (f settingFlags) given() map[string]string {
	given := map[string]string{}
	for i, s := range setting.Table() {
		v := f.target.Elem().Field(i)
		if !v.IsNil() {
			given[s.Name] = fmt.Sprint(v.Elem().Interface())
		}
	}
	return given
}

// layers are where settings come from, weakest first: defaults, file, environment, flags.
type layers struct {
	file      string // "" for none
	lookupEnv func(string) (string, bool)
	flags     map[string]string
}

// merge gives the settings in effect, each with its source. All that is wrong is reported at once.
func (l layers) merge() (*setting.Values, error) {
	v := setting.Defaults()
	var faults []error
	if l.file != "" {
		if err := applyFile(v, l.file); err != nil {
			faults = append(faults, err)
		}
	}
	for _, s := range setting.Table() {
		if text, ok := l.lookupEnv(s.Env()); ok {
			if err := v.Set(s.Name, text, "env"); err != nil {
				faults = append(faults, fault("environment variable "+s.Env(), s, err))
			}
		}
		if text, ok := l.flags[s.Name]; ok {
			if err := v.Set(s.Name, text, "flag"); err != nil {
				faults = append(faults, fault("flag --"+s.Flag(), s, err))
			}
		}
	}
	if len(faults) > 0 {
		return nil, fail(exitUsage, errors.Join(faults...),
			"run `highwater prove --help` for every setting and its values")
	}
	return v, nil
}

// fault says where a bad value stands. The setting's own name goes from the message where the place
// says it already.
func fault(place string, s setting.Setting, err error) error {
	return fmt.Errorf("%s: %s", place, strings.TrimPrefix(err.Error(), s.Name+": "))
}

// knownEnv are the variables of ours that are no settings.
var knownEnv = map[string]bool{envConfig: true, envCacheDir: true, "HIGHWATER_NATIVE": true}

// Environment variables beside the settings.
const (
	envConfig   = "HIGHWATER_CONFIG"
	envCacheDir = "HIGHWATER_CACHE_DIR"
)

// warnUnknownEnv warns of variables that look like settings and are none: a misspelt one would be
// ignored in silence.
func warnUnknownEnv(ui *tui, environ []string) {
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(name, "HIGHWATER_")
		if !ours || knownEnv[name] {
			continue
		}
		if _, err := setting.Lookup(strings.ToLower(rest)); err != nil {
			ui.warn("environment variable %s is ignored: %v", name, err)
		}
	}
}

// processLayers are the layers of this process.
func processLayers(file string, flags map[string]string) layers {
	return layers{file: file, lookupEnv: os.LookupEnv, flags: flags}
}
