package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// A machine is where a run was made, and with what.
type machine struct {
	cpu   string
	cpus  int
	os    string
	goVer string
	redis string
	libs  []string // "module version"

	commit string // of the code, with "+changes" if it is not exactly that; "": not known
}

// measured are the modules whose versions the document names.
var measured = []string{
	"github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
	"github.com/redis/rueidis", "github.com/bsm/redislock",
	"github.com/go-co-op/gocron/v2", "github.com/go-co-op/gocron-redis-lock/v2",
}

func thisMachine(ctx context.Context, node asker) (machine, error) {
	m := machine{
		cpu: fileValue("/proc/cpuinfo", "model name", ":"), cpus: runtime.NumCPU(),
		os:    fileValue("/etc/os-release", "PRETTY_NAME", "="),
		goVer: runtime.Version(), libs: versions(), commit: commit(),
	}
	if m.cpu == "" {
		m.cpu = "CPU of unknown model"
	}
	if m.os == "" {
		m.os = runtime.GOOS
	}
	m.os += ", " + runtime.GOARCH
	answer, err := node.Do(ctx, "INFO", "server")
	if err != nil {
		return m, err
	}
	m.redis = valueOf(fmt.Sprint(answer), "redis_version", ":")
	return m, nil
}

// versions are those of what is compared.
func versions() []string {
	var libs []string
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, module := range measured {
		for _, dep := range info.Deps {
			if dep.Path == module {
				libs = append(libs, strings.TrimPrefix(module, "github.com/")+" "+dep.Version)
			}
		}
	}
	return libs
}

// fileValue is the first value of that name in a file; "" where there is none.
func fileValue(file, name, separator string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return valueOf(string(text), name, separator)
}

func valueOf(text, name, separator string) string {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), separator)
		if ok && strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

func (m machine) String() string {
	text := fmt.Sprintf("%s, %d CPUs, %s; %s; redis-server %s; %s",
		m.cpu, m.cpus, m.os, m.goVer, m.redis, strings.Join(m.libs, ", "))
	if m.commit != "" {
		text += "; commit " + m.commit
	}
	return text
}
