// One TCP flow in ns-3: sender - access - router - bottleneck with losses and a queue of one bandwidth-delay product -
// receiver, as in scenarios/witnesses/ns3.toml. Prints the mean rate at the receiving application in bit/s.
//
// What ns-3 would choose otherwise is set here: its segments of 536 bytes, its buffers of 128 KiB, the queueing discipline
// it puts above a device with flow control, timestamps, and limited transmit.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>
#include <string>

using namespace ns3;

int main(int argc, char** argv)
{
    std::string control = "NewReno";
    std::string recovery = "Classic";
    double per = 1e-4;
    double seconds = 300;
    uint32_t run = 1;
    CommandLine arguments(__FILE__);
    arguments.AddValue("control", "congestion control, as in ns3::Tcp...", control);
    arguments.AddValue("recovery", "Classic or Prr", recovery);
    arguments.AddValue("per", "packet error rate", per);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("run", "run number", run);
    arguments.Parse(argc, argv);

    RngSeedManager::SetRun(run);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::Tcp" + control)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::Tcp" + recovery + "Recovery")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));

    NodeContainer nodes(3);
    PointToPointHelper access;
    access.DisableFlowControl();
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetChannelAttribute("Delay", StringValue("0.1ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    PointToPointHelper bottleneck;
    bottleneck.DisableFlowControl();
    bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("100ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("167p"));
    NetDeviceContainer first = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer second = bottleneck.Install(nodes.Get(1), nodes.Get(2));

    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(per);
    second.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer left = addresses.Assign(first);
    addresses.NewNetwork();
    Ipv4InterfaceContainer right = addresses.Assign(second);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const uint16_t port = 9;
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(right.GetAddress(1), port));
    source.SetAttribute("SendSize", UintegerValue(14600));
    source.Install(nodes.Get(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer sinks = sink.Install(nodes.Get(2));

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() * 8 / seconds << std::endl;
    Simulator::Destroy();
    return 0;
}
