package integration

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// ErrNoEngine says that no container engine answers. Nothing was started.
var ErrNoEngine = errors.New("integration: no container engine answers; these tests need Docker " +
	"or a compatible engine (DOCKER_HOST says where)")

// publicImage is used where the environment names no other. It is of glibc, as the clock
// shim wants.
const publicImage = "redis:7.4"

// ownImage is the one that is built here, without its tag.
const ownImage = "quorumlock-redis"

// imageVariable names the image to use.
const imageVariable = "QUORUMLOCK_REDIS_IMAGE"

// How long a pull and a build may take.
const (
	pullTimeout  = 3 * time.Minute
	buildTimeout = 5 * time.Minute
)

// engine is the container engine, or why there is none.
var engine = sync.OnceValues(func() (*testcontainers.DockerProvider, error) {
	// No container that removes others: it would be one more image. Tests remove what they made,
	// and .ci/integration looks after them.
	setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
	// Mapped ports are on 127.0.0.1. Where the tests themselves run in a container, testcontainers
	// would dial the bridge's gateway instead.
	setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	log.SetDefault(quiet{})
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet{}))
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
		defer cancel()
		err = provider.Health(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	return provider, nil
})

func setDefault(variable, value string) {
	if _, ok := os.LookupEnv(variable); !ok {
		os.Setenv(variable, value)
	}
}

// engine is for nodes, which there are none of without one.
func (n *Node) engine() client.APIClient {
	provider, err := engine()
	if err != nil {
		panic(err)
	}
	return provider.Client()
}

// findImage finds or makes the image, once per program.
func findImage(ctx context.Context) (string, error) {
	if _, err := engine(); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return imageOnce()
}

// imageOnce looks in this order: what the environment names, the public image if it is here, the
// one that was built here before, the public image from a registry, one built now.
var imageOnce = sync.OnceValues(func() (string, error) {
	if name := os.Getenv(imageVariable); name != "" {
		return name, fetch(name)
	}
	build, own, err := buildScript()
	if err != nil {
		return "", err
	}
	for _, name := range []string{publicImage, own} {
		if present(name) {
			return name, nil
		}
	}
	pullErr := pull(publicImage)
	if pullErr == nil {
		return publicImage, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, build, own).CombinedOutput(); err != nil {
		return "", fmt.Errorf("integration: %s cannot be pulled (%w), nor an image be built: %w\n%s",
			publicImage, pullErr, err, out)
	}
	return own, nil
})

// fetch makes sure that the image which the environment names is here.
func fetch(name string) error {
	if present(name) {
		return nil
	}
	if err := pull(name); err != nil {
		return fmt.Errorf("integration: %s=%s: the image is not here and cannot be pulled: %w",
			imageVariable, name, err)
	}
	return nil
}

// buildScript is the script that builds an image, and the name of what it builds: another name when
// the script or the shim have changed.
func buildScript() (path, image string, err error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Dir(here)
	path = filepath.Join(dir, "image", "build")
	sum := sha256.New()
	for _, file := range []string{path, filepath.Join(dir, "..", "internal/redisproc/shim/clock.c")} {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		sum.Write(text)
	}
	return path, fmt.Sprintf("%s:%x", ownImage, sum.Sum(nil)[:6]), nil
}

func present(image string) bool {
	provider, err := engine()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
	defer cancel()
	_, err = provider.Client().ImageInspect(ctx, image)
	return err == nil
}

func pull(image string) error {
	provider, err := engine()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout)
	defer cancel()
	progress, err := provider.Client().ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	defer progress.Close()
	return progress.Wait(ctx)
}
