// Command controlplane is a Kubernetes control plane for tests: the real components of one release in one binary,
// each started as a process of its own by naming it in the first argument.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version on /metrics
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// commands are the components, by the names that Kubernetes gives them. Each is built only when it is asked for,
// because building one registers its feature gates and flags for the whole process.
var commands = map[string]func() *cobra.Command{
	"etcd":                    etcdCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"verdicts":                verdictsCommand,
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

// endsWithStdin is a variable that ties a component to whoever started it: when that one is gone, however it ended,
// the input closes and the component ends as well.
const endsWithStdin = "CONTROLPLANE_ENDS_WITH_STDIN"

func exitAtEndOfInput() {
	// An error is as good as the end: nobody is there to hear about it.
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		names := strings.Join(slices.Sorted(maps.Keys(commands)), ", ")
		fmt.Fprintf(os.Stderr, "usage: controlplane COMPONENT [FLAGS]\ncomponents: %s\n", names)
		os.Exit(2)
	}
	if os.Getenv(endsWithStdin) != "" {
		go exitAtEndOfInput()
	}
	command := commands[os.Args[1]]
	// A component sees its own name and flags, as if it were a binary of its own.
	os.Args = os.Args[1:]
	os.Exit(cli.Run(command()))
}
