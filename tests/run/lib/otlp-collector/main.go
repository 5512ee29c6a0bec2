// SPDX-License-Identifier: Apache-2.0

// The OpenTelemetry Collector's receiver of OTLP, alone. It listens at ADDRESS for bodies of up to MAX bytes and writes
// each request, as the Collector understood it and encodes it anew, to FOLDER/N.pb, N from 1. While FOLDER/busy is there
// the pipeline takes nothing. It ends with its standard input.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	address, folder := os.Args[1], os.Args[2]
	limit, err := strconv.ParseInt(os.Args[3], 10, 64)
	must(err)
	var received atomic.Int32
	take := func(_ context.Context, p pprofile.Profiles) error {
		if _, err := os.Stat(filepath.Join(folder, "busy")); err == nil {
			return errors.New("the pipeline is busy")
		}
		bytes, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
		must(err)
		name := filepath.Join(folder, fmt.Sprintf("%d.pb", received.Add(1)))
		must(os.WriteFile(name+".part", bytes, 0o644))
		return os.Rename(name+".part", name)
	}
	next, err := xconsumer.NewProfiles(take, consumer.WithCapabilities(consumer.Capabilities{}))
	must(err)
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{
		"endpoint": address, "max_request_body_size": limit}}}).Unmarshal(config))
	receiver, err := factory.(xreceiver.Factory).CreateProfiles(context.Background(),
		receivertest.NewNopSettings(factory.Type()), config, next)
	must(err)
	must(receiver.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	must(receiver.Shutdown(context.Background()))
}
