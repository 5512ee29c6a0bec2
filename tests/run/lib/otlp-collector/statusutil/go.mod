module go.opentelemetry.io/collector/internal/statusutil

go 1.25.0

require (
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250528174236-200df99c418a
	google.golang.org/grpc v1.75.0
)
