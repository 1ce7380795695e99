// One bulk TCP flow over a chain of 802.11b stations in ns-3, as in scenarios/air/chain-4.toml and chain-16.toml. Prints the mean rate at
// the receiving application, in bit/s, and the IP packets handed to the two hosts and to a MAC where --count=true asks for them, which
// takes time of its own.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <iostream>

using namespace ns3;

static uint64_t handed = 0;
static uint64_t delivered = 0;

static void OnMacTx(Ptr<const Packet>)
{
    ++handed;
}

static void OnDelivered(const Ipv4Header&, Ptr<const Packet>, uint32_t)
{
    ++delivered;
}

// What arrives over `metres`, antennas 1.5 m above the ground: thresholds are set by it.
static double ArrivesAt(double metres, double sentDbm, Ptr<TwoRayGroundPropagationLossModel> loss)
{
    auto one = CreateObject<ConstantPositionMobilityModel>();
    auto other = CreateObject<ConstantPositionMobilityModel>();
    one->SetPosition(Vector(0, 0, 1.5));
    other->SetPosition(Vector(metres, 0, 1.5));
    return loss->CalcRxPower(sentDbm, one, other);
}

static NetDeviceContainer Radios(NodeContainer nodes, double received, double sensed)
{
    const double sentDbm = 16.0206;
    auto loss = CreateObject<TwoRayGroundPropagationLossModel>();
    loss->SetAttribute("Frequency", DoubleValue(2.412e9));
    Config::SetDefault("ns3::ThresholdPreambleDetectionModel::MinimumRssi",
                       DoubleValue(ArrivesAt(received, sentDbm, loss)));
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(2.412e9));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(sentDbm));
    phy.Set("TxPowerEnd", DoubleValue(sentDbm));
    phy.Set("CcaEdThreshold", DoubleValue(ArrivesAt(sensed, sentDbm, loss)));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    WifiHelper::AssignStreams(devices, 1000);
    return devices;
}

int main(int argc, char** argv)
{
    uint32_t hops = 4;
    double seconds = 420, spacing = 300, received = 370, sensed = 520;
    bool count = false;
    CommandLine arguments(__FILE__);
    arguments.AddValue("hops", "of the chain", hops);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("spacing", "metres between stations", spacing);
    arguments.AddValue("received", "metres", received);
    arguments.AddValue("sensed", "metres", sensed);
    arguments.AddValue("count", "packets too", count);
    arguments.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpNewReno")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(1448));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(0));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(10)));

    NodeContainer nodes(hops + 1);
    auto places = CreateObject<ListPositionAllocator>();
    for (uint32_t i = 0; i <= hops; ++i)
    {
        places->Add(Vector(i * spacing, 0, 1.5));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
    NetDeviceContainer devices = Radios(nodes, received, sensed);

    Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetRoutingHelper(routing);
    stack.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices); // Assign() has put a discipline above the devices
    for (uint32_t i = 0; i <= hops; ++i)
    {
        Ptr<Ipv4StaticRouting> routes = routing.GetStaticRouting(nodes.Get(i)->GetObject<Ipv4>());
        if (i + 1 < hops)
        {
            routes->AddHostRouteTo(interfaces.GetAddress(hops), interfaces.GetAddress(i + 1), 1);
        }
        if (i > 1)
        {
            routes->AddHostRouteTo(interfaces.GetAddress(0), interfaces.GetAddress(i - 1), 1);
        }
    }
    NeighborCacheHelper().PopulateNeighborCache();

    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(hops), 5000));
    source.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    ApplicationContainer sinks = sink.Install(nodes.Get(hops));
    sinks.Start(Seconds(0));
    if (count)
    {
        for (uint32_t i = 0; i < devices.GetN(); ++i)
        {
            DynamicCast<WifiNetDevice>(devices.Get(i))
                ->GetMac()
                ->TraceConnectWithoutContext("MacTx", MakeCallback(&OnMacTx));
        }
        for (uint32_t i : {0u, hops})
        {
            nodes.Get(i)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("LocalDeliver",
                                                                                  MakeCallback(&OnDelivered));
        }
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t bytes = DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx();
    std::cout << bytes * 8.0 / seconds << " " << delivered << " " << handed << std::endl;
    Simulator::Destroy();
    return 0;
}
