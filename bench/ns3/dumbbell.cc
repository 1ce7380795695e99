// Bulk TCP flows through one bottleneck in ns-3, as in scenarios/restp/dumbbell-2.toml and dumbbell-64.toml. Prints the
// mean rate at all receiving applications together, in bit/s.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>
#include <string>

using namespace ns3;

// Devices drop at the tail, without a queueing discipline above them.
PointToPointHelper Line(const std::string& rate, const std::string& delay, const std::string& queue)
{
    PointToPointHelper line;
    line.DisableFlowControl();
    line.SetDeviceAttribute("DataRate", StringValue(rate));
    line.SetChannelAttribute("Delay", StringValue(delay));
    line.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return line;
}

int main(int argc, char** argv)
{
    uint32_t flows = 2;
    std::string accessRate = "100Mbps", accessDelay = "0.1ms", rate = "10Mbps", delay = "10ms", queue = "18p";
    double seconds = 600;
    double spread = 0;
    CommandLine arguments(__FILE__);
    arguments.AddValue("flows", "how many", flows);
    arguments.AddValue("accessRate", "of every access link", accessRate);
    arguments.AddValue("accessDelay", "of every access link", accessDelay);
    arguments.AddValue("rate", "of the bottleneck", rate);
    arguments.AddValue("delay", "of the bottleneck", delay);
    arguments.AddValue("queue", "of every device", queue);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("spread", "flows start within so many seconds", spread);
    arguments.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpNewReno")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));

    NodeContainer senders(flows), receivers(flows), middle(2);
    InternetStackHelper stack;
    stack.Install(senders);
    stack.Install(receivers);
    stack.Install(middle);
    PointToPointHelper access = Line(accessRate, accessDelay, queue);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(Line(rate, delay, queue).Install(middle.Get(0), middle.Get(1)));
    ApplicationContainer sinks;
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; ++i)
    {
        addresses.NewNetwork();
        addresses.Assign(access.Install(senders.Get(i), middle.Get(0)));
        addresses.NewNetwork();
        Ipv4InterfaceContainer right = addresses.Assign(access.Install(middle.Get(1), receivers.Get(i)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sinks.Add(sink.Install(receivers.Get(i)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(right.GetAddress(1), 9));
        source.SetAttribute("SendSize", UintegerValue(1448));
        source.Install(senders.Get(i)).Start(Seconds(start->GetValue(0, spread)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < flows; ++i)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    std::cout << bytes * 8 / seconds << std::endl;
    Simulator::Destroy();
    return 0;
}
