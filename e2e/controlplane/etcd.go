package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdStartMax is how long a member may take to be ready.
const etcdStartMax = time.Minute

// etcdOptions are what a single-member store on the loopback address needs to know.
type etcdOptions struct {
	dataDir           string
	clientURL         string
	certFile, keyFile string
	trustedCAFile     string
	unsafeNoFsync     bool
}

func etcdCommand() *cobra.Command {
	var options etcdOptions
	command := &cobra.Command{
		Use:           "etcd",
		Short:         "A single-member etcd that listens on one URL and demands client certificates",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return runEtcd(options) },
	}
	flags := command.Flags()
	flags.StringVar(&options.dataDir, "data-dir", "", "folder of the data")
	flags.StringVar(&options.clientURL, "listen-client-url", "", "URL to serve clients at")
	flags.StringVar(&options.certFile, "cert-file", "", "certificate of the server")
	flags.StringVar(&options.keyFile, "key-file", "", "private key of the server")
	flags.StringVar(&options.trustedCAFile, "trusted-ca-file", "", "authority that signs clients")
	flags.BoolVar(&options.unsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk: survives a killed process, not a lost machine")
	for _, name := range []string{"data-dir", "listen-client-url", "cert-file", "key-file", "trusted-ca-file"} {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return command
}

// runEtcd serves until the process is told to end.
func runEtcd(options etcdOptions) error {
	config, err := options.config()
	if err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("etcd cannot start: %w", err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("etcd failed while starting: %w", err)
	case <-time.After(etcdStartMax):
		return fmt.Errorf("etcd was not ready after %s", etcdStartMax)
	case <-end:
		return nil
	}
	select {
	case err := <-server.Err():
		return fmt.Errorf("etcd failed: %w", err)
	case <-end:
		return nil
	}
}

func (o etcdOptions) config() (*embed.Config, error) {
	client, err := url.Parse(o.clientURL)
	if err != nil {
		return nil, fmt.Errorf("--listen-client-url: %w", err)
	}
	config := embed.NewConfig()
	config.Name = "default"
	config.Dir = o.dataDir
	config.UnsafeNoFsync = o.unsafeNoFsync
	config.LogLevel = "warn"
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	config.ClientTLSInfo.CertFile = o.certFile
	config.ClientTLSInfo.KeyFile = o.keyFile
	config.ClientTLSInfo.TrustedCAFile = o.trustedCAFile
	config.ClientTLSInfo.ClientCertAuth = true
	// A store of one member has nobody to talk to: no peer port is opened, only a name is recorded.
	config.ListenPeerUrls = nil
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config, nil
}
